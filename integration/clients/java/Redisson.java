import java.io.IOException;

/** Redisson's lock: a hash that counts how often its holder has taken it. It answers nil to whom it was granted. */
final class Redisson implements Locks.Dialect {
    private static final String LOCK = """
        local free = redis.call('exists', KEYS[1]) == 0
        if free or redis.call('hexists', KEYS[1], ARGV[2]) == 1 then
            redis.call('hincrby', KEYS[1], ARGV[2], 1)
            redis.call('pexpire', KEYS[1], ARGV[1])
            return nil
        end
        return redis.call('pttl', KEYS[1])
        """;
    private static final String UNLOCK = """
        if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then
            return nil
        end
        if redis.call('hincrby', KEYS[1], ARGV[1], -1) > 0 then
            return 0
        end
        redis.call('del', KEYS[1])
        redis.call('publish', 'redisson_lock__channel:{' .. KEYS[1] .. '}', 0)
        return 1
        """;

    private final Connection redis;
    private final String field;

    Redisson(Connection redis, String name) {
        this.redis = redis;
        this.field = name + ":1";
    }

    @Override
    public Object run(String operation, String key, String... arguments) throws IOException {
        if (operation.equals("take")) {
            return redis.script(LOCK, key, arguments[0], field) == null ? "granted" : "held by another";
        }
        return redis.script(UNLOCK, key, field);
    }
}
