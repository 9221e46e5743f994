package script

import (
	"bufio"
	"errors"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"redlock-proxy/commands/lockkeys/keyspace"
	"redlock-proxy/internal/redistest"
)

// redisClient is a connection to a redis-server that the test has started. It returns replies as
// values.
type redisClient struct {
	t      testing.TB
	conn   net.Conn
	reader *bufio.Reader
}

// startRedis starts a redis-server that ends with the test.
func startRedis(t testing.TB) *redisClient {
	t.Helper()
	server := redistest.New(t, redistest.Options{ExtraArgs: []string{"--lazyfree-lazy-user-flush", "no"}})
	conn, err := net.Dial("tcp", server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &redisClient{t, conn, bufio.NewReader(conn)}
}

func (c *redisClient) do(words ...string) keyspace.Reply {
	c.t.Helper()
	_ = c.conn.SetDeadline(time.Now().Add(time.Minute))
	if _, err := c.conn.Write(redistest.AppendCommand(nil, words...)); err != nil {
		c.t.Fatalf("%.100q: %v", words, err)
	}
	reply, err := readReply(c.reader)
	if err != nil {
		c.t.Fatalf("%.300q: %v", words, err)
	}
	return reply
}

// eval runs a script on the server.
func (c *redisClient) eval(body string, keys, argv []string) keyspace.Reply {
	c.t.Helper()
	words := append([]string{"EVAL", body, strconv.Itoa(len(keys))}, keys...)
	return c.do(append(words, argv...)...)
}

// call runs a command as a script on the server would, with the errors that scripts get.
func (c *redisClient) call(words []string, _ func(int)) (keyspace.Reply, error) {
	return c.eval("return redis.pcall(unpack(ARGV))", nil, words), nil
}

func readReply(r *bufio.Reader) (reply keyspace.Reply, err error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return reply, err
	}
	kind, text := line[0], strings.TrimSuffix(line[1:], "\r\n")
	n, _ := strconv.ParseInt(text, 10, 64)
	switch kind {
	case '+':
		return keyspace.Reply{Kind: keyspace.Status, Str: text}, nil
	case '-':
		return keyspace.ErrorReply(text), nil
	case ':':
		return keyspace.IntReply(n), nil
	case '$':
		return readBulk(r, int(n))
	case '*':
		return readArray(r, int(n))
	}
	return reply, errors.New("not a reply: " + strconv.Quote(line))
}

func readBulk(r *bufio.Reader, n int) (keyspace.Reply, error) {
	if n < 0 {
		return keyspace.Reply{Kind: keyspace.Nil}, nil
	}
	text := make([]byte, n+2)
	for at := 0; at < len(text); {
		count, err := r.Read(text[at:])
		if err != nil {
			return keyspace.Reply{}, err
		}
		at += count
	}
	return keyspace.BulkReply(string(text[:n])), nil
}

func readArray(r *bufio.Reader, n int) (keyspace.Reply, error) {
	if n < 0 {
		return keyspace.Reply{Kind: keyspace.NilArray}, nil
	}
	list := keyspace.ArrayReply()
	for range n {
		e, err := readReply(r)
		if err != nil {
			return list, err
		}
		list.Elems = append(list.Elems, e)
	}
	return list, nil
}

// scriptsOf returns the scripts of a file, which are separated by lines of dashes.
func scriptsOf(t testing.TB, file string) []string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n----\n")
}
