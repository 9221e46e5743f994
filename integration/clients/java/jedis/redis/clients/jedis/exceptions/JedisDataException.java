package redis.clients.jedis.exceptions;

/** An error reply. */
public class JedisDataException extends RuntimeException {
    private static final long serialVersionUID = 1;

    /** Makes an exception of the text of an error reply. */
    public JedisDataException(String message) {
        super(message);
    }
}
