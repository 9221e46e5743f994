import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.util.Arrays;
import java.util.Map;

/**
 * What lock libraries of the JVM send, at the server HOST PORT as client NAME: java Locks HOST PORT NAME
 *
 * <p>Reads requests "DIALECT OPERATION KEY ARGUMENT..." line by line, and answers each with one line: what the library gives, or
 * the class and the text of what it throws.
 */
public final class Locks {
    /** A dialect carries out operations on keys. */
    interface Dialect {
        Object run(String operation, String key, String... arguments) throws IOException;
    }

    public static void main(String[] args) throws IOException {
        String host = args[0];
        int port = Integer.parseInt(args[1]);
        String name = args[2];
        Connection redis = new Connection(host, port);
        Map<String, Dialect> known = Map.ofEntries(
            Map.entry("jedis", new Jedis(redis, name)),
            Map.entry("spring", new Spring(redis, name)),
            Map.entry("spring-7.0", new Spring.Scripted(redis, name)),
            Map.entry("spring-5", new Spring.Unguarded(redis, name)),
            Map.entry("spring-pubsub", new Spring.Published(redis, name, () -> new Connection(host, port))),
            Map.entry("shedlock", new ShedLock(redis, name)),
            Map.entry("shedlock-safe", new ShedLock.Safe(redis, name)),
            Map.entry("redlock4j", new Redlock4j(redis, name)),
            Map.entry("redisson", new Redisson(redis, name)),
            Map.entry("quartz", new Quartz(redis, name, "")),
            Map.entry("quartz-data-upstream", new Quartz(redis, name, "jobs:")),
            Map.entry("jedis-lock", new JedisLock(redis)));
        System.out.println("ready");
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in));
        for (String request = requests.readLine(); request != null; request = requests.readLine()) {
            System.out.println(answer(known, request.split(" ")));
        }
    }

    private static String answer(Map<String, Dialect> known, String[] words) {
        try {
            String[] arguments = Arrays.copyOfRange(words, 3, words.length);
            return String.valueOf(known.get(words[0]).run(words[1], words[2], arguments));
        } catch (Exception e) {
            return e.getClass().getSimpleName() + ": " + e.getMessage();
        }
    }

    private Locks() {
    }
}
