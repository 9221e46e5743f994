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

	"redlock-proxy/commands/register"
	"redlock-proxy/integration/harness"
)

// redisClient is a connection to a redis-server of the test's own, which gives replies as values.
type redisClient struct {
	t      testing.TB
	conn   net.Conn
	reader *bufio.Reader
}

// startRedis starts a redis-server that ends with the test.
func startRedis(t testing.TB) *redisClient {
	t.Helper()
	server, err := harness.StartRedis(harness.RedisOptions{ExtraArgs: []string{"--lazyfree-lazy-user-flush", "no"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	conn, err := net.Dial("tcp", server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &redisClient{t, conn, bufio.NewReader(conn)}
}

// do sends a command and returns its reply.
func (c *redisClient) do(words ...string) register.Reply {
	c.t.Helper()
	_ = c.conn.SetDeadline(time.Now().Add(time.Minute))
	if _, err := c.conn.Write(harness.AppendCommand(nil, words...)); err != nil {
		c.t.Fatalf("%.100q: %v", words, err)
	}
	reply, err := readReply(c.reader)
	if err != nil {
		c.t.Fatalf("%.300q: %v", words, err)
	}
	return reply
}

// eval runs a script on the server.
func (c *redisClient) eval(body string, keys, argv []string) register.Reply {
	c.t.Helper()
	words := append([]string{"EVAL", body, strconv.Itoa(len(keys))}, keys...)
	return c.do(append(words, argv...)...)
}

// call carries out a command as a script on the server would, with the errors that scripts get.
func (c *redisClient) call(words []string) (register.Reply, error) {
	return c.eval("return redis.pcall(unpack(ARGV))", nil, words), nil
}

func readReply(r *bufio.Reader) (reply register.Reply, err error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return reply, err
	}
	kind, text := line[0], strings.TrimSuffix(line[1:], "\r\n")
	n, _ := strconv.ParseInt(text, 10, 64)
	switch kind {
	case '+':
		return register.Reply{Kind: register.Status, Str: text}, nil
	case '-':
		return register.Fail(text), nil
	case ':':
		return register.Number(n), nil
	case '$':
		return readBulk(r, int(n))
	case '*':
		return readArray(r, int(n))
	}
	return reply, errors.New("not a reply: " + strconv.Quote(line))
}

func readBulk(r *bufio.Reader, n int) (register.Reply, error) {
	if n < 0 {
		return register.Reply{Kind: register.Nil}, nil
	}
	text := make([]byte, n+2)
	for at := 0; at < len(text); {
		read, err := r.Read(text[at:])
		if err != nil {
			return register.Reply{}, err
		}
		at += read
	}
	return register.Text(string(text[:n])), nil
}

func readArray(r *bufio.Reader, n int) (register.Reply, error) {
	if n < 0 {
		return register.Reply{Kind: register.NilArray}, nil
	}
	list := register.List()
	for range n {
		e, err := readReply(r)
		if err != nil {
			return list, err
		}
		list.Elems = append(list.Elems, e)
	}
	return list, nil
}

// scriptsOf are the scripts of a file, which lines of dashes separate.
func scriptsOf(t testing.TB, file string) []string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n----\n")
}
