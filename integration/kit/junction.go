package kit

import (
	"bytes"
	"io"
	"net"
	"sync"
	"testing"

	"redlock-proxy/internal/redistest"
)

// Junction is one address of a master for all proxies, as a change of the masters needs it, behind
// which each proxy has a link of its own. It distinguishes them by the password with which they log
// in; a master without one takes any.
type Junction struct {
	listener net.Listener
	mu       sync.Mutex
	ways     map[string]string // by password: the address of a link
	tasks    sync.WaitGroup
	conns    []net.Conn
}

// StartJunction starts one, which ends with the test.
func StartJunction(t *testing.T) *Junction {
	t.Helper()
	listener, err := redistest.ListenFree("127.0.0.1")
	Must(t, err)
	j := &Junction{listener: listener, ways: map[string]string{}}
	j.tasks.Go(j.accept)
	t.Cleanup(j.close)
	return j
}

// Addr is the address, as host:port.
func (j *Junction) Addr() string { return j.listener.Addr().String() }

// URL is that of the master for the proxy that logs in with a password.
func (j *Junction) URL(password string) string { return "redis://default:" + password + "@" + j.Addr() }

func (j *Junction) close() {
	_ = j.listener.Close()
	j.mu.Lock()
	for _, conn := range j.conns {
		_ = conn.Close()
	}
	j.mu.Unlock()
	j.tasks.Wait()
}

// Lead has connections with a password go over a link.
func (j *Junction) Lead(password, link string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.ways[password] = link
}

func (j *Junction) accept() {
	for {
		conn, err := j.listener.Accept()
		if err != nil {
			return
		}
		j.keep(conn)
		j.tasks.Go(func() { j.forward(conn) })
	}
}

// keep has a connection be closed at the end.
func (j *Junction) keep(conn net.Conn) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.conns = append(j.conns, conn)
}

// way is the link of whoever has begun with these bytes, or empty.
func (j *Junction) way(began []byte) string {
	j.mu.Lock()
	defer j.mu.Unlock()
	for password, link := range j.ways {
		if bytes.Contains(began, []byte("\r\n"+password+"\r\n")) {
			return link
		}
	}
	return ""
}

func (j *Junction) forward(client net.Conn) {
	defer client.Close()
	var began []byte
	for buffer := make([]byte, 4<<10); j.way(began) == ""; {
		n, err := client.Read(buffer)
		if began = append(began, buffer[:n]...); err != nil {
			return
		}
	}
	link, err := net.Dial("tcp", j.way(began))
	if err != nil {
		return
	}
	defer link.Close()
	j.keep(link)
	if _, err := link.Write(began); err != nil {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { // what was sent arrives, also where its sender leaves
		_, _ = io.Copy(link, client)
		_ = link.(*net.TCPConn).CloseWrite()
	})
	both.Go(func() {
		_, _ = io.Copy(client, link)
		_ = client.Close()
	})
	both.Wait()
}
