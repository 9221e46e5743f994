import java.io.IOException;

/** redlock4j: it tries at first whether the server compares and deletes by itself. */
final class Redlock4j extends Jedis {
    private static final String RENEW =
        "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('set', KEYS[1], ARGV[2], 'PX', ARGV[3]) end return nil";

    private final boolean compares;

    Redlock4j(Connection redis, String name) throws IOException {
        super(redis, name);
        compares = probe();
    }

    private boolean probe() throws IOException {
        try {
            redis.call("DELEX", "__redlock4j_cad_test__" + System.currentTimeMillis(), "IFEQ", "test_value");
            return true;
        } catch (Connection.ErrorReply e) {
            return false;
        }
    }

    @Override
    protected Object release(String key) throws IOException {
        if (compares) {
            return redis.call("DELEX", key, "IFEQ", token);
        }
        return redis.script(DELETE, key, token);
    }

    @Override
    protected Object extend(String key, String ms) throws IOException {
        if (compares) {
            return redis.call("SET", key, token, "IFEQ", token, "PX", ms);
        }
        return redis.script(RENEW, key, token, token, ms);
    }
}
