import java.io.BufferedInputStream;
import java.io.ByteArrayOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;

/** A connection to a Redis, which speaks RESP2. */
final class Connection implements AutoCloseable {
    /** An error reply. */
    static final class ErrorReply extends RuntimeException {
        ErrorReply(String text) {
            super(text);
        }
    }

    private final Socket socket;
    private final InputStream in;

    Connection(String host, int port) throws IOException {
        socket = new Socket(host, port);
        socket.setTcpNoDelay(true);
        in = new BufferedInputStream(socket.getInputStream());
    }

    /** Sends one command and returns its reply: a String, a Long, a List or null. */
    Object call(String... words) throws IOException {
        command(words).writeTo(socket.getOutputStream());
        return receive();
    }

    /** Sends several commands at once and returns their replies. The first error among them is thrown when all are there. */
    List<Object> pipeline(List<List<String>> commands) throws IOException {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        for (List<String> words : commands) {
            command(words.toArray(new String[0])).writeTo(out);
        }
        out.writeTo(socket.getOutputStream());
        List<Object> replies = new ArrayList<>();
        ErrorReply error = null;
        for (int i = 0; i < commands.size(); i++) {
            try {
                replies.add(receive());
            } catch (ErrorReply e) {
                error = error == null ? e : error;
            }
        }
        if (error != null) {
            throw error;
        }
        return replies;
    }

    private static ByteArrayOutputStream command(String... words) {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        out.writeBytes(("*" + words.length + "\r\n").getBytes(StandardCharsets.UTF_8));
        for (String word : words) {
            byte[] bytes = word.getBytes(StandardCharsets.UTF_8);
            out.writeBytes(("$" + bytes.length + "\r\n").getBytes(StandardCharsets.UTF_8));
            out.writeBytes(bytes);
            out.writeBytes("\r\n".getBytes(StandardCharsets.UTF_8));
        }
        return out;
    }

    /** Runs a script by its SHA, or whole where the server does not know it. */
    Object script(String body, String key, String... arguments) throws IOException {
        try {
            return call(words("EVALSHA", sha(body), key, arguments));
        } catch (ErrorReply e) {
            if (!e.getMessage().startsWith("NOSCRIPT")) {
                throw e;
            }
            return call(words("EVAL", body, key, arguments));
        }
    }

    /** Reads one reply. */
    Object receive() throws IOException {
        String line = line();
        String rest = line.substring(1);
        switch (line.charAt(0)) {
            case '+':
                return rest;
            case '-':
                throw new ErrorReply(rest);
            case ':':
                return Long.valueOf(rest);
            case '$':
                return bulk(Integer.parseInt(rest));
            case '*':
                return array(Integer.parseInt(rest));
            default:
                throw new IOException("not a reply: " + line);
        }
    }

    @Override
    public void close() throws IOException {
        socket.close();
    }

    private static String[] words(String command, String script, String key, String... arguments) {
        List<String> words = new ArrayList<>(List.of(command, script, "1", key));
        words.addAll(List.of(arguments));
        return words.toArray(new String[0]);
    }

    private static String sha(String body) {
        try {
            byte[] sum = MessageDigest.getInstance("SHA-1").digest(body.getBytes(StandardCharsets.UTF_8));
            return HexFormat.of().formatHex(sum);
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException(e);
        }
    }

    private String line() throws IOException {
        StringBuilder line = new StringBuilder();
        for (int b = in.read(); b != '\n'; b = in.read()) {
            if (b < 0) {
                throw new EOFException("the connection was closed");
            }
            line.append((char) b);
        }
        return line.substring(0, line.length() - 1);
    }

    private String bulk(int length) throws IOException {
        if (length < 0) {
            return null;
        }
        String text = new String(in.readNBytes(length), StandardCharsets.UTF_8);
        in.skipNBytes(2);
        return text;
    }

    private List<Object> array(int length) throws IOException {
        if (length < 0) {
            return null;
        }
        List<Object> items = new ArrayList<>();
        for (int i = 0; i < length; i++) {
            items.add(receive());
        }
        return items;
    }
}
