package redis.clients.jedis;

import java.io.BufferedInputStream;
import java.io.ByteArrayOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import redis.clients.jedis.commands.ProtocolCommand;
import redis.clients.jedis.exceptions.JedisDataException;

/** What docs/examples.md uses of Jedis, which Debian does not have: the same signatures, over RESP2. */
public class Jedis implements AutoCloseable {
    private final Socket socket;
    private final InputStream in;

    /** Connects to a server. */
    public Jedis(String host, int port) {
        try {
            socket = new Socket(host, port);
            in = new BufferedInputStream(socket.getInputStream());
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Sends a command and returns its reply: byte[], Long, List or null. */
    public Object sendCommand(ProtocolCommand command, String... args) {
        try {
            ByteArrayOutputStream out = new ByteArrayOutputStream();
            out.writeBytes(("*" + (args.length + 1) + "\r\n").getBytes(StandardCharsets.UTF_8));
            bulk(out, command.getRaw());
            for (String arg : args) {
                bulk(out, arg.getBytes(StandardCharsets.UTF_8));
            }
            out.writeTo(socket.getOutputStream());
            return reply();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    @Override
    public void close() {
        try {
            socket.close();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static void bulk(ByteArrayOutputStream out, byte[] text) {
        out.writeBytes(("$" + text.length + "\r\n").getBytes(StandardCharsets.UTF_8));
        out.writeBytes(text);
        out.writeBytes("\r\n".getBytes(StandardCharsets.UTF_8));
    }

    private Object reply() throws IOException {
        String line = line();
        String rest = line.substring(1);
        switch (line.charAt(0)) {
            case '+':
                return rest.getBytes(StandardCharsets.UTF_8);
            case '-':
                throw new JedisDataException(rest);
            case ':':
                return Long.valueOf(rest);
            case '$':
                if (rest.equals("-1")) {
                    return null;
                }
                byte[] text = in.readNBytes(Integer.parseInt(rest));
                line();
                return text;
            case '*':
                if (rest.equals("-1")) {
                    return null;
                }
                List<Object> all = new ArrayList<>();
                for (int i = Integer.parseInt(rest); i > 0; i--) {
                    all.add(reply());
                }
                return all;
            default:
                throw new IOException("unknown reply: " + line);
        }
    }

    private String line() throws IOException {
        StringBuilder line = new StringBuilder();
        for (int c = in.read(); c != '\n'; c = in.read()) {
            if (c < 0) {
                throw new EOFException();
            }
            line.append((char) c);
        }
        return line.substring(0, line.length() - 1);
    }
}
