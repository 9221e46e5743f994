package redis.clients.jedis.commands;

/** The name of a command. */
public interface ProtocolCommand {
    /** Returns the name as it is sent. */
    byte[] getRaw();
}
