package quorum

import (
	"errors"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
)

// interceptor is a proxy in front of a master. It forwards all data until setAnswer sets a fixed
// reply to every request.
type interceptor struct {
	net.Listener
	master string
	// answer is the reply to every request; empty means that requests are forwarded. endless makes
	// the reply endless.
	answer  atomic.Pointer[string]
	endless atomic.Bool
	tasks   sync.WaitGroup
}

func newInterceptor(t *testing.T, master string) *interceptor {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &interceptor{Listener: ln, master: master}
	p.setAnswer("", false)
	p.tasks.Go(p.accept)
	t.Cleanup(func() { _ = ln.Close(); p.tasks.Wait() })
	return p
}

func (p *interceptor) setAnswer(answer string, endless bool) {
	p.endless.Store(endless)
	p.answer.Store(&answer)
}

func (p *interceptor) accept() {
	for {
		conn, err := p.Accept()
		if err != nil {
			return
		}
		p.tasks.Go(func() { p.serve(conn) })
	}
}

func (p *interceptor) serve(conn net.Conn) {
	defer conn.Close()
	master, err := net.Dial("tcp", p.master)
	if err != nil {
		return
	}
	defer master.Close()
	p.tasks.Go(func() { // the master's replies
		defer conn.Close()
		_, _ = pipe(conn, master, func([]byte) []byte { return nil })
	})
	_, _ = pipe(master, conn, func([]byte) []byte {
		answer := *p.answer.Load()
		if answer == "" {
			return nil
		}
		_, err := conn.Write([]byte(answer))
		for p.endless.Load() && err == nil {
			_, err = conn.Write([]byte(strings.Repeat("x", 1<<16)))
		}
		return []byte{}
	})
}

// pipe forwards all data for which replace returns nil.
func pipe(to, from net.Conn, replace func([]byte) []byte) (n int64, err error) {
	buf := make([]byte, 1<<16)
	for {
		got, err := from.Read(buf)
		if err != nil {
			return n, err
		}
		if replace(buf[:got]) != nil {
			continue
		}
		if _, err := to.Write(buf[:got]); err != nil {
			return n, err
		}
	}
}

// malformedAnswers returns replies that would make an unprotected reader panic, or use all memory.
func malformedAnswers() map[string]string {
	all := map[string]string{}
	for _, header := range []string{
		"$9223372036854775807", "$99999999999", "*2147483647", ">2147483647", "~2147483647", "!2147483647",
		"=2147483647", "%2147483647",
	} {
		all[header] = header + "\r\n"
	}
	all["deep"] = strings.Repeat("*1\r\n", 1<<20)
	all["wide and deep"] = strings.Repeat("*131072\r\n", 1<<12)
	all["inside of an answer"] = "*3\r\n:0\r\n$9223372036854775807\r\n"
	all["unasked"] = strings.Repeat("$-1\r\n", 1<<12)
	all["not Redis"] = "HTTP/1.1 400 Bad Request\r\n\r\n"
	return all
}

// TestMalformedAnswers lets masters send malformed replies. If one master does, the process
// survives, uses little memory, and the other masters decide. If all masters do, LOCK returns an
// error and grants nothing.
func TestMalformedAnswers(t *testing.T) {
	t.Parallel()
	var interceptors []*interceptor
	var urls []string
	for range 3 {
		p := newInterceptor(t, miniredis.RunT(t).Addr())
		interceptors = append(interceptors, p)
		urls = append(urls, "redis://"+p.Addr().String())
	}
	c := runCluster(t, Options{Masters: urls, FreshStart: true})
	texts := malformedAnswers()
	texts["endless status"], texts["endless error"] = "+", "-"
	for name, text := range texts {
		start := allocatedBytes()
		malformed := interceptors[len(name)%3]
		malformed.setAnswer(text, len(text) == 1)
		key := Key{Name: name}
		if err := c.takeFreeKey(t, key); err != nil {
			t.Errorf("%s: LOCK: %v", name, err)
		}
		awaitStatus(t, c, name, func(s MasterStatus) bool { return s.Err != nil }, 1)
		if err := c.Release(t.Context(), key, token); err != nil && !isLate(err) {
			t.Errorf("%s: UNLOCK: %v", name, err)
		}
		malformed.setAnswer("", false)
		awaitStatus(t, c, name, func(s MasterStatus) bool { return s.State == Voting }, 3)
		if used := allocatedBytes() - start; used > 512<<20 {
			t.Errorf("%s: it took %d MB", name, used>>20)
		}
	}
	for _, p := range interceptors {
		p.setAnswer("$9223372036854775807\r\n", false)
	}
	_, err := c.Take(t.Context(), TakeRequest{Keys: []Key{job}, TakeOptions: TakeOptions{Tokens: []string{token}, TTL: time.Minute}})
	if noQuorum := new(NoQuorumError); !errors.As(err, &noQuorum) {
		t.Errorf("all of them: %v", err)
	}
}

// TestConnectionOfMalformedAnswer sends a well-formed but meaningless reply. The proxy
// closes that connection, and uses the next one.
func TestConnectionOfMalformedAnswer(t *testing.T) {
	p := newInterceptor(t, miniredis.RunT(t).Addr())
	c := runCluster(t, Options{Masters: []string{"redis://" + p.Addr().String()}, Unguarded: true})
	c.mustTake(t, Key{Name: "before"})
	p.setAnswer(":7\r\n", false)
	if _, err := c.Take(t.Context(),
		TakeRequest{Keys: []Key{job}, TakeOptions: TakeOptions{Tokens: []string{token}, TTL: time.Minute}}); err == nil {
		t.Error("it was granted")
	}
	p.setAnswer("", false)
	awaitStatus(t, c, "after it", func(s MasterStatus) bool { return s.Err == nil }, 1)
	c.mustTake(t, Key{Name: "after"})
}

func allocatedBytes() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// awaitStatus waits until matches returns true for at least want masters.
func awaitStatus(t *testing.T, c *Cluster, name string, matches func(MasterStatus) bool, want int) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		n := 0
		for _, s := range c.Status() {
			if matches(s) {
				n++
			}
		}
		if n >= want {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %+v", name, c.Status())
		}
	}
}
