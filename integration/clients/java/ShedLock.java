import java.io.IOException;

/** ShedLock: a release is a DEL, or a SET XX for the rest of the time that the lock has to last at least. */
final class ShedLock extends Jedis {
    ShedLock(Connection redis, String name) {
        super(redis, name);
    }

    @Override
    protected Object release(String key) throws IOException {
        return redis.call("DEL", key);
    }

    @Override
    protected Object extend(String key, String ms) throws IOException {
        return redis.call("SET", key, token, "XX", "PX", ms);
    }

    /** ShedLock that looks whose the lock is. */
    static final class Safe extends Jedis {
        Safe(Connection redis, String name) {
            super(redis, name);
        }
    }
}
