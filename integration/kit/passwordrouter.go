package kit

import (
	"bytes"
	"io"
	"net"
	"sync"
	"testing"

	"redlock-proxy/internal/redistest"
)

// PasswordRouter gives a master the same address for all proxies, as a change of the masters
// requires. It forwards the connections of each proxy over a separate link. It distinguishes the
// proxies by the password with which they log in; a master without a password accepts any password.
type PasswordRouter struct {
	listener net.Listener
	mu       sync.Mutex
	links    map[string]string // addresses of links, by password
	tasks    sync.WaitGroup
	conns    []net.Conn
}

// StartPasswordRouter starts a router, which is closed when the test ends.
func StartPasswordRouter(t *testing.T) *PasswordRouter {
	t.Helper()
	listener, err := redistest.ListenFree("127.0.0.1")
	Must(t, err)
	j := &PasswordRouter{listener: listener, links: map[string]string{}}
	j.tasks.Go(j.accept)
	t.Cleanup(j.close)
	return j
}

// Addr returns the address, as host:port.
func (j *PasswordRouter) Addr() string { return j.listener.Addr().String() }

// URL returns the URL of the master for the proxy that logs in with a password.
func (j *PasswordRouter) URL(password string) string {
	return "redis://default:" + password + "@" + j.Addr()
}

func (j *PasswordRouter) close() {
	_ = j.listener.Close()
	j.mu.Lock()
	for _, conn := range j.conns {
		_ = conn.Close()
	}
	j.mu.Unlock()
	j.tasks.Wait()
}

// Route forwards connections that use a password over a link.
func (j *PasswordRouter) Route(password, link string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.links[password] = link
}

func (j *PasswordRouter) accept() {
	for {
		conn, err := j.listener.Accept()
		if err != nil {
			return
		}
		j.closeAtEnd(conn)
		j.tasks.Go(func() { j.forward(conn) })
	}
}

// closeAtEnd closes a connection when the router is closed.
func (j *PasswordRouter) closeAtEnd(conn net.Conn) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.conns = append(j.conns, conn)
}

// linkFor returns the address of the link for a connection that began with these bytes, or "".
func (j *PasswordRouter) linkFor(firstBytes []byte) string {
	j.mu.Lock()
	defer j.mu.Unlock()
	for password, link := range j.links {
		if bytes.Contains(firstBytes, []byte("\r\n"+password+"\r\n")) {
			return link
		}
	}
	return ""
}

func (j *PasswordRouter) forward(client net.Conn) {
	defer client.Close()
	var firstBytes []byte
	for buffer := make([]byte, 4<<10); j.linkFor(firstBytes) == ""; {
		n, err := client.Read(buffer)
		if firstBytes = append(firstBytes, buffer[:n]...); err != nil {
			return
		}
	}
	link, err := net.Dial("tcp", j.linkFor(firstBytes))
	if err != nil {
		return
	}
	defer link.Close()
	j.closeAtEnd(link)
	if _, err := link.Write(firstBytes); err != nil {
		return
	}
	var forwarders sync.WaitGroup
	forwarders.Go(func() { // forwards all bytes, even if the client has closed the connection
		_, _ = io.Copy(link, client)
		_ = link.(*net.TCPConn).CloseWrite()
	})
	forwarders.Go(func() {
		_, _ = io.Copy(client, link)
		_ = client.Close()
	})
	forwarders.Wait()
}
