package proxy_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"net"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"redlock-proxy/proxy"
)

// probingListener accepts connections on which each write first waits until every lock of the
// server is free.
type probingListener struct {
	net.Listener
	t      *testing.T
	server *proxy.Server
}

func (l probingListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	return probingConn{conn, l}, err
}

type probingConn struct {
	net.Conn
	listener probingListener
}

func (c probingConn) Write(p []byte) (int, error) {
	free := make(chan struct{})
	go func() {
		defer close(free)
		for _, lock := range c.listener.server.Mutexes() {
			lock.Lock()
			runtime.Gosched()
			lock.Unlock()
		}
	}()
	select {
	case <-free:
	case <-time.After(testTimeout):
		c.listener.t.Errorf("a lock is held while %.40q is written", p)
	}
	return c.Conn.Write(p)
}

// TestWriteHoldsNoMutex checks that no goroutine holds a lock while it writes to a client.
// The writes are replies of the proxy and the upstream, messages, invalidations, and errors after
// the upstream has failed.
func TestWriteHoldsNoMutex(t *testing.T) {
	server := startRedis(t)
	r := newTestProxy(t, testTimeout, server.URL(), proxy.Options{}, []string{"lock:*"})
	r.serve(probingListener{listen(t), t, r.server})
	c, other := dial(t, r.addr), dial(t, r.addr)
	c.send(cmd("GET k") + cmd("SET lock:k 1") + cmd("GET lock:k") + cmd("LOCK l t PX 60000"))
	c.expect("$-1\r\n+OK\r\n$1\r\n1\r\n:60000\r\n")
	c.ask("HELLO 3")
	c.ask("CLIENT TRACKING ON")
	c.ask("SUBSCRIBE news")
	other.check("PUBLISH news x", ":1\r\n")
	c.expect(">3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$1\r\nx\r\n")
	c.check("GET lock:k", "$1\r\n1\r\n")
	if err := server.Pause(); err != nil {
		t.Fatal(err)
	}
	sent := r.server.Counts().BytesToUpstream
	other.send(cmd("GET k"))
	eventually(t, "the GET at the upstream", func() bool { return r.server.Counts().BytesToUpstream > sent })
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	if got := other.readReply(); !strings.HasPrefix(got, "-ERR upstream") {
		t.Errorf("got %q", got)
	}
	r = newLockServer(t)
	r.serve(probingListener{listen(t), t, r.server})
	c = dial(t, r.addr)
	c.check("SET lock:k 1", "+OK\r\n")
	c.check("GET lock:k", "$1\r\n1\r\n")
}

// TestClientWriterIsSoleWriter checks that only a clientWriter writes to an admitted
// client. A clientWriter holds no lock during a write.
func TestClientWriterIsSoleWriter(t *testing.T) {
	writeMethods := []string{"Write", "WriteString", "WriteWithin", "WriteSome"}
	allowed := map[string]string{"clientwriter.go": "", "relay.go": "send", "admission.go": "refuseConn",
		"listener.go": "Accept"}
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !strings.HasSuffix(file.Name(), ".go") || strings.HasSuffix(file.Name(), "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range parsed.Decls {
			function, ok := decl.(*ast.FuncDecl)
			name, listed := allowed[file.Name()]
			if !ok || listed && (name == "" || name == function.Name.Name) {
				continue
			}
			ast.Inspect(function, func(n ast.Node) bool {
				if call, ok := n.(*ast.SelectorExpr); ok && slices.Contains(writeMethods, call.Sel.Name) {
					t.Errorf("%s: %s writes by %s", file.Name(), function.Name.Name, call.Sel.Name)
				}
				return true
			})
		}
	}
}
