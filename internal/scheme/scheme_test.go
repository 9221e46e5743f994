package scheme

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http/httptest"
	"os"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"redlock-proxy/internal/redistest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const testTimeout = 10 * time.Second

func TestAdvice(t *testing.T) {
	plain := redistest.New(t, redistest.Options{}).Addr()
	web := httptest.NewTLSServer(nil)
	t.Cleanup(web.Close)
	tlsAddr := web.Listener.Addr().String()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	refusing, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = refusing.Close() })
	go func() {
		for {
			conn, err := refusing.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(conn, "-ERR this port requires TLS\r\n")
			_ = conn.Close()
		}
	}()
	for name, c := range map[string]struct {
		server  Server
		timeout time.Duration
		err     error
		want    string
	}{
		"TLS to a server without TLS": {Server{"tcp", plain, true}, testTimeout, os.ErrDeadlineExceeded, usePlainAdvice},
		"the error shows the cause":   {Server{"tcp", plain, true}, testTimeout, tls.RecordHeaderError{}, usePlainAdvice},
		"no TLS to a server with TLS": {Server{"tcp", tlsAddr, false}, testTimeout, io.EOF, useTLSAdvice},
		"reset by a server with TLS": {Server{"tcp", tlsAddr, false}, testTimeout,
			&net.OpError{Err: syscall.ECONNRESET}, useTLSAdvice},
		"TLS to a server with TLS":       {Server{"tcp", tlsAddr, true}, testTimeout, io.EOF, ""},
		"no TLS to a server without TLS": {Server{"tcp", plain, false}, 50 * time.Millisecond, io.EOF, ""},
		"TLS to a proxy with TLS":        {Server{"tcp", refusing.Addr().String(), true}, testTimeout, io.EOF, ""},
		"refused by the server": {Server{"tcp", refusing.Addr().String(), false}, testTimeout, io.EOF,
			"ERR this port requires TLS"},
		"another error":         {Server{"tcp", plain, true}, testTimeout, errors.New("WRONGPASS"), ""},
		"an unreachable server": {Server{"tcp", plain, true}, testTimeout, syscall.ECONNREFUSED, ""},
		"TLS to a server that hangs": {Server{"tcp", silent.Addr().String(), true}, 50 * time.Millisecond,
			os.ErrDeadlineExceeded, ""},
		"no TLS to a server that hangs": {Server{"tcp", silent.Addr().String(), false}, 50 * time.Millisecond,
			os.ErrDeadlineExceeded, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Advice(t.Context(), c.server, c.timeout, c.err); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
