import java.io.IOException;
import java.util.HashSet;
import java.util.Set;

/**
 * jedis-lock 1.0.0, with which redis-quartz locks its store: the value is the time at which the lock ends, and a release that comes after it
 * removes another's.
 */
final class JedisLock implements Locks.Dialect {
    private final Connection redis;
    private final Set<String> locked = new HashSet<>();

    JedisLock(Connection redis) {
        this.redis = redis;
    }

    @Override
    public Object run(String operation, String key, String... arguments) throws IOException {
        switch (operation) {
            case "take":
                return take(key, Long.parseLong(arguments[0]));
            case "release":
                return release(key);
            default:
                throw new IllegalArgumentException(operation);
        }
    }

    private boolean take(String key, long ms) throws IOException {
        String end = String.valueOf(System.currentTimeMillis() + ms + 1);
        if (redis.call("SETNX", key, end).equals(1L)) {
            locked.add(key);
            return true;
        }
        Object before = redis.call("GET", key);
        if (before == null || Long.parseLong((String) before) >= System.currentTimeMillis()) {
            return false;
        }
        if (before.equals(redis.call("GETSET", key, end))) { // it was over, and nobody else was quicker
            locked.add(key);
            return true;
        }
        return false;
    }

    private Object release(String key) throws IOException {
        if (!locked.remove(key)) {
            return "not locked";
        }
        return redis.call("DEL", key);
    }
}
