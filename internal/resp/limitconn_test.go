package resp

import (
	"context"
	"errors"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// scriptedConn imitates a connection to a peer that sends a text, ignores all requests, and then
// disconnects.
type scriptedConn struct {
	net.Conn
	text io.Reader
}

func (c scriptedConn) Read(p []byte) (int, error)     { return c.text.Read(p) }
func (scriptedConn) Write(p []byte) (int, error)      { return len(p), nil }
func (scriptedConn) Close() error                     { return nil }
func (scriptedConn) SetDeadline(time.Time) error      { return nil }
func (scriptedConn) SetReadDeadline(time.Time) error  { return nil }
func (scriptedConn) SetWriteDeadline(time.Time) error { return nil }
func (scriptedConn) RemoteAddr() net.Addr             { return &net.TCPAddr{} }

// client returns a go-redis client whose connections send this text after the login.
func client(text string) *redis.Client {
	return redis.NewClient(&redis.Options{
		Protocol: 2, DisableIdentity: true, MaxRetries: -1, DialerRetries: 1, PoolSize: 1, PipelinePoolSize: -1,
		Dialer: func(context.Context, string, string) (net.Conn, error) {
			return Limit(scriptedConn{text: strings.NewReader("-ERR unknown command\r\n" + text)}, ClientLimits()), nil
		},
	})
}

func allocatedBytes() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// TestLimit checks that Limit refuses hostile replies before they make the client library crash or
// exhaust memory.
func TestLimit(t *testing.T) {
	all := hostileReplies()
	all["an endless status"] = "+" + strings.Repeat("x", 1<<20)
	all["deep arrays"] = strings.Repeat("*1\r\n", 1<<20)
	for _, name := range []string{
		"a string of 2^63-1 bytes", "a string of 2^64 bytes", "a string of 100 GB", "an array of 2^31-1 elements",
		"a push", "a set", "a map",
		"a long error", "a verbatim text", "an endless status", "deep arrays",
	} {
		before := allocatedBytes()
		c := client(all[name])
		_, err := c.Do(t.Context(), "GET", "k").Result()
		_ = c.Close()
		if protocolErr := new(ProtocolError); !errors.As(err, &protocolErr) {
			t.Errorf("%s: %v", name, err)
		}
		if used := allocatedBytes() - before; used > 16<<20 {
			t.Errorf("%s: it took %d MB", name, used>>20)
		}
	}
}

// FuzzClient checks that for any replies, the client library returns, and uses no more memory than
// the limits allow.
func FuzzClient(f *testing.F) {
	for _, text := range hostileReplies() {
		f.Add(text)
	}
	f.Add("*2\r\n:1\r\n$3\r\nabc\r\n")
	f.Fuzz(func(t *testing.T, text string) {
		before := allocatedBytes()
		c := client(text)
		defer c.Close()
		pipe := c.Pipeline()
		pipe.Do(t.Context(), "EVALSHA")
		pipe.HGetAll(t.Context(), "h")
		pipe.ConfigGet(t.Context(), "x")
		pipe.Time(t.Context())
		_, _ = pipe.Exec(t.Context())
		if used := allocatedBytes() - before; used > 512<<20 {
			t.Errorf("%q took %d MB", text, used>>20)
		}
	})
}
