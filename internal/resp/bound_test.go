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

// saying is a connection to a peer that sends a text, ignores all requests, and then disconnects.
type saying struct {
	net.Conn
	text io.Reader
}

func (c saying) Read(p []byte) (int, error)     { return c.text.Read(p) }
func (saying) Write(p []byte) (int, error)      { return len(p), nil }
func (saying) Close() error                     { return nil }
func (saying) SetDeadline(time.Time) error      { return nil }
func (saying) SetReadDeadline(time.Time) error  { return nil }
func (saying) SetWriteDeadline(time.Time) error { return nil }
func (saying) RemoteAddr() net.Addr             { return &net.TCPAddr{} }

// client returns a go-redis client whose connections send this text after the login.
func client(text string) *redis.Client {
	return redis.NewClient(&redis.Options{
		Protocol: 2, DisableIdentity: true, MaxRetries: -1, DialerRetries: 1, PoolSize: 1, PipelinePoolSize: -1,
		Dialer: func(context.Context, string, string) (net.Conn, error) {
			return Limit(saying{text: strings.NewReader("-ERR unknown command\r\n" + text)}, Client()), nil
		},
	})
}

func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// TestBound: no reply within the limits makes the client library crash or exhaust memory.
func TestBound(t *testing.T) {
	all := hostile()
	all["an endless status"] = "+" + strings.Repeat("x", 1<<20)
	all["deep arrays"] = strings.Repeat("*1\r\n", 1<<20)
	for _, name := range []string{
		"a string of 2^63-1 bytes", "a string of 2^64 bytes", "a string of 100 GB", "an array of 2^31-1 elements",
		"a push", "a set", "a map",
		"a long error", "a verbatim text", "an endless status", "deep arrays",
	} {
		before := allocated()
		c := client(all[name])
		_, err := c.Do(t.Context(), "GET", "k").Result()
		_ = c.Close()
		if wrong := new(ProtocolError); !errors.As(err, &wrong) {
			t.Errorf("%s: %v", name, err)
		}
		if took := allocated() - before; took > 16<<20 {
			t.Errorf("%s: it took %d MB", name, took>>20)
		}
	}
}

// FuzzClient: for any replies, the client library returns, and uses no more memory than the limits
// allow.
func FuzzClient(f *testing.F) {
	for _, text := range hostile() {
		f.Add(text)
	}
	f.Add("*2\r\n:1\r\n$3\r\nabc\r\n")
	f.Fuzz(func(t *testing.T, text string) {
		before := allocated()
		c := client(text)
		defer c.Close()
		pipe := c.Pipeline()
		pipe.Do(t.Context(), "EVALSHA")
		pipe.HGetAll(t.Context(), "h")
		pipe.ConfigGet(t.Context(), "x")
		pipe.Time(t.Context())
		_, _ = pipe.Exec(t.Context())
		if took := allocated() - before; took > 512<<20 {
			t.Errorf("%q took %d MB", text, took>>20)
		}
	})
}
