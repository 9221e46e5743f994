import java.io.IOException;

/** The lock of many articles: SET and EVAL. */
class Jedis implements Locks.Dialect {
    static final String DELETE =
        "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end";
    static final String EXPIRE =
        "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) else return 0 end";

    protected final Connection redis;
    protected final String token;

    Jedis(Connection redis, String name) {
        this.redis = redis;
        this.token = "token of " + name;
    }

    @Override
    public Object run(String operation, String key, String... arguments) throws IOException {
        switch (operation) {
            case "take":
                return take(key, arguments[0]);
            case "release":
                return release(key);
            case "extend":
                return extend(key, arguments[0]);
            default:
                throw new IllegalArgumentException(operation);
        }
    }

    protected Object take(String key, String ms) throws IOException {
        return redis.call("SET", key, token, "NX", "PX", ms);
    }

    protected Object release(String key) throws IOException {
        return redis.call("EVAL", DELETE, "1", key, token);
    }

    protected Object extend(String key, String ms) throws IOException {
        return redis.call("EVAL", EXPIRE, "1", key, token, ms);
    }
}
