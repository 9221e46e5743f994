import java.io.IOException;
import java.util.ConcurrentModificationException;
import java.util.List;

/** Spring Integration's registry: one token for all locks of a process. Releases and renewals try Redis 8.4's commands first. */
class Spring implements Locks.Dialect {
    private static final String OBTAIN = """
        local holder = redis.call('GET', KEYS[1])
        if holder == ARGV[1] then
            redis.call('PEXPIRE', KEYS[1], ARGV[2])
            return true
        end
        if not holder then
            redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
            return true
        end
        return false
        """;
    private static final String RELEASE = """
        if redis.call('GET', KEYS[1]) ~= ARGV[1] then
            return false
        end
        redis.call('UNLINK', KEYS[1])
        return true
        """;
    private static final String RENEW = """
        if redis.call('GET', KEYS[1]) ~= ARGV[1] then
            return false
        end
        redis.call('PEXPIRE', KEYS[1], ARGV[2])
        return true
        """;

    protected final Connection redis;
    protected final String token;
    protected boolean comparing = true;

    Spring(Connection redis, String name) {
        this.redis = redis;
        this.token = "registry of " + name;
    }

    @Override
    public Object run(String operation, String key, String... arguments) throws IOException {
        switch (operation) {
            case "take":
                return take(key, arguments[0]);
            case "wait":
                return await(key, arguments[0]);
            case "release":
                return require(release(key));
            case "extend":
                return require(renew(key, arguments[0]));
            case "comparing":
                return comparing;
            default:
                throw new IllegalArgumentException(operation);
        }
    }

    protected boolean take(String key, String ms) throws IOException {
        return redis.script(OBTAIN, key, token, ms) != null;
    }

    protected Object await(String key, String ms) throws IOException {
        throw new UnsupportedOperationException();
    }

    protected boolean release(String key) throws IOException {
        Object done = comparingOr(() -> redis.call("DELEX", key, "IFEQ", token), () -> redis.script(RELEASE, key, token));
        return done != null && !done.equals(0L);
    }

    protected boolean renew(String key, String ms) throws IOException {
        return comparingOr(() -> redis.call("SET", key, token, "IFEQ", token, "PX", ms),
            () -> redis.script(RENEW, key, token, ms)) != null;
    }

    private static String require(boolean done) {
        if (!done) {
            throw new ConcurrentModificationException("Lock was released in the store due to expiration.");
        }
        return "done";
    }

    /** Something to ask of the server. */
    interface Question {
        Object ask() throws IOException;
    }

    /** Asks the one, unless the server has shown by its words that it does not know such things: then the other, for ever. */
    private Object comparingOr(Question one, Question other) throws IOException {
        if (comparing) {
            try {
                return one.ask();
            } catch (Connection.ErrorReply e) {
                if (!e.getMessage().contains("ERR syntax error") && !e.getMessage().contains("ERR unknown command")) {
                    throw e;
                }
                comparing = false;
            }
        }
        return other.ask();
    }

    /** The registry of Spring 7.0: scripts only. */
    static final class Scripted extends Spring {
        Scripted(Connection redis, String name) {
            super(redis, name);
            comparing = false;
        }
    }

    /** The registry of Spring 5.5: a release looks first, and then deletes whatever is there. */
    static final class Unguarded extends Spring {
        Unguarded(Connection redis, String name) {
            super(redis, name);
        }

        @Override
        protected boolean release(String key) throws IOException {
            if (!token.equals(redis.call("GET", key))) {
                return false;
            }
            return redis.call("UNLINK", key).equals(1L);
        }
    }

    /** The registry whose waiters sleep until the release is published. */
    static final class Published extends Spring {
        private static final String RELEASE_AND_TELL = """
            if redis.call('GET', KEYS[1]) == ARGV[1] and redis.call('UNLINK', KEYS[1]) == 1 then
                redis.call('PUBLISH', ARGV[2], KEYS[1])
                return true
            end
            return false
            """;
        private static final String CHANNEL = "registry-channel:";

        /** Opens connections. */
        interface Dialler {
            Connection dial() throws IOException;
        }

        private final Dialler dialler;

        Published(Connection redis, String name, Dialler dialler) {
            super(redis, name);
            this.dialler = dialler;
        }

        @Override
        protected boolean release(String key) throws IOException {
            return redis.script(RELEASE_AND_TELL, key, token, CHANNEL + key) != null;
        }

        /** Waits for the message that tells of the release, and tries again then. */
        @Override
        protected Object await(String key, String ms) throws IOException {
            try (Connection subscribed = dialler.dial()) {
                subscribed.call("PSUBSCRIBE", CHANNEL + "*");
                while (!take(key, ms)) {
                    List<?> message = (List<?>) subscribed.receive();
                    if (!message.get(3).equals(key)) {
                        throw new IOException("a message of another lock: " + message);
                    }
                }
            }
            return true;
        }
    }
}
