package upstream

import (
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"redlock-proxy/internal/logtest"
)

// sentinelAnswers returns a Sentinel's answers about a master at this address.
func sentinelAnswers(addr string, epoch int) map[string]string {
	host, port, _ := strings.Cut(addr, ":")
	return map[string]string{
		"GET-MASTER-ADDR-BY-NAME": fmt.Sprintf("*2\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n", len(host), host, len(port), port),
		"MASTER": fmt.Sprintf("*4\r\n$4\r\nname\r\n$1\r\nm\r\n$12\r\nconfig-epoch\r\n$%d\r\n%d\r\n",
			len(fmt.Sprint(epoch)), epoch),
	}
}

// startSentinel starts a Sentinel that answers SENTINEL GET-MASTER-ADDR-BY-NAME and MASTER from a
// table that can be replaced.
func startSentinel(t *testing.T, answers map[string]string) (*scripted, *atomic.Value) {
	var now atomic.Value
	now.Store(answers)
	return startScripted(t, func(command string) string {
		words := strings.Fields(command)
		if words[0] == "AUTH" {
			return "+OK\r\n"
		}
		return now.Load().(map[string]string)[words[1]]
	}), &now
}

// startRole starts a server with this role.
func startRole(t *testing.T, role string) *scripted {
	return startScripted(t, func(command string) string {
		if command == "ROLE" {
			return role
		}
		return "+PONG\r\n"
	})
}

const (
	masterRole  = "*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n"
	replicaRole = "*5\r\n$5\r\nslave\r\n$1\r\nh\r\n:1\r\n$9\r\nconnected\r\n:0\r\n"
)

func newFollowing(t *testing.T, login string, sentinels ...*scripted) (*Upstream, *logtest.Buffer) {
	t.Helper()
	var addrs []string
	for _, s := range sentinels {
		addrs = append(addrs, s.ln.Addr().String())
	}
	log := &logtest.Buffer{}
	up, err := NewFollowing("redis://nowhere:1", Sentinels{Master: "m", Addrs: addrs, Password: login}, patience,
		slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(up.Close)
	return up, log
}

// TestOddSentinels: an invalid reply of a Sentinel ends only that question.
func TestOddSentinels(t *testing.T) {
	right := sentinelAnswers("h:1", 3)
	for _, c := range []struct{ answer, about, want string }{
		{"-IDONTKNOW I have not enough information\r\n", "", "IDONTKNOW I have not enough information"},
		{"*-1\r\n", "", "unknown master name"},
		{"_\r\n", "", "unknown master name"},
		{"*0\r\n", "", "its answer is not an address"},
		{"*1\r\n$1\r\nh\r\n", "", "its answer is not an address"},
		{"*3\r\n$1\r\nh\r\n$1\r\n1\r\n$1\r\n1\r\n", "", "its answer is not an address"},
		{"*2\r\n$1\r\nh\r\n$1\r\n0\r\n", "", "its answer is not an address"},
		{"*2\r\n$1\r\nh\r\n$5\r\n65536\r\n", "", "its answer is not an address"},
		{"*2\r\n$3\r\nh\r\n\r\n$1\r\n1\r\n", "", "its answer is not an address"},
		{"+OK\r\n", "", "its answer is not an address"},
		{"$999999999\r\n", "", "the upstream closed the connection"},
		{right["GET-MASTER-ADDR-BY-NAME"], "", "the upstream closed the connection"},
		{right["GET-MASTER-ADDR-BY-NAME"], "-NOPERM x\r\n", ""},
		{right["GET-MASTER-ADDR-BY-NAME"], "*2\r\n$12\r\nconfig-epoch\r\n$1\r\nx\r\n", ""},
		{right["GET-MASTER-ADDR-BY-NAME"], right["MASTER"], ""},
	} {
		if c.about == "" && !strings.HasPrefix(c.want, "the up") {
			c.about = right["MASTER"]
		}
		s, _ := startSentinel(t, map[string]string{"GET-MASTER-ADDR-BY-NAME": c.answer, "MASTER": c.about})
		if strings.HasPrefix(c.answer, "$9") { // the reply ends after that
			s = startScripted(t, func(string) string { return c.answer[:0] })
		}
		up, _ := newFollowing(t, "", s)
		addr, err := up.Locate(t.Context())
		switch {
		case c.want == "" && (err != nil || addr != "h:1"):
			t.Errorf("%q, %q: %s, %v", c.answer, c.about, addr, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) ||
			!strings.HasPrefix(err.Error(), "no Sentinel returned the address of m: ")):
			t.Errorf("%q, %q: %s, %v", c.answer, c.about, addr, err)
		}
	}
}

func TestChoose(t *testing.T) {
	a1, a2, b1, b2 := opinion{"a:1", 1}, opinion{"a:1", 2}, opinion{"b:1", 1}, opinion{"b:1", 2}
	for _, c := range []struct {
		all   []opinion
		known string
		want  opinion
	}{
		{nil, "", opinion{}},
		{[]opinion{a1}, "", a1},
		{[]opinion{a1, b2, a1}, "a:1", b2}, // the latest, even against a majority
		{[]opinion{b2, a1, a1}, "", b2},
		{[]opinion{a1, b1, b1}, "a:1", b1}, // within an epoch, the majority
		{[]opinion{b1, b1, a1}, "a:1", b1},
		{[]opinion{a2, b2}, "b:1", b2}, // no majority: no change
		{[]opinion{b2, a2}, "b:1", b2},
	} {
		if got := chooseOpinion(c.all, c.known); got != c.want {
			t.Errorf("%v, %q: %v, want %v", c.all, c.known, got, c.want)
		}
	}
}

// TestFollowing: a failover is noticed from the Sentinel that knows of it. A Sentinel that does not
// know of it changes nothing.
func TestFollowing(t *testing.T) {
	old, new := startRole(t, masterRole), startRole(t, masterRole)
	s1, says1 := startSentinel(t, sentinelAnswers(old.ln.Addr().String(), 1))
	s2, says2 := startSentinel(t, sentinelAnswers(old.ln.Addr().String(), 1))
	up, log := newFollowing(t, "secret", s1, s2)
	moves := 0
	up.OnFailover(func() { moves++ })
	if up.Name() != "m" {
		t.Errorf("unknown, it is called %s", up.Name())
	}
	connectTo := func(want *scripted) {
		t.Helper()
		conn, err := up.Connect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if got := conn.RemoteAddr().String(); got != want.ln.Addr().String() || up.Name() != got {
			t.Errorf("connected to %s, and it is called %s", got, up.Name())
		}
	}
	connectTo(old)
	says1.Store(sentinelAnswers(new.ln.Addr().String(), 2))
	if _, err := up.find(t.Context()); err != nil {
		t.Fatal(err)
	}
	connectTo(new)
	if moves != 1 || up.Term() != 1 || !strings.Contains(log.String(),
		"from="+old.ln.Addr().String()+" to="+new.ln.Addr().String()) {
		t.Errorf("%d moves, term %d, logged %s", moves, up.Term(), log.String())
	}
	says1.Store(map[string]string{}) // gone, and the other has not heard of it
	if _, err := up.find(t.Context()); err != nil {
		t.Fatal(err)
	}
	connectTo(new)
	says2.Store(map[string]string{})
	for range 2 {
		if _, err := up.find(t.Context()); err == nil {
			t.Error("no Sentinel found it")
		}
	}
	connectTo(new) // it is still there
	if strings.Count(log.String(), "no Sentinel returned") != 1 || strings.Contains(log.String(), "secret") {
		t.Errorf("logged %s", log.String())
	}
}

// TestFollowingAsksForTheRole: a server that reports a role other than master is not used, and the
// Sentinels are asked again. A server that reports no role is used.
func TestFollowingAsksForTheRole(t *testing.T) {
	replica, master := startRole(t, replicaRole), startRole(t, "-NOPERM no\r\n")
	s, says := startSentinel(t, sentinelAnswers(replica.ln.Addr().String(), 1))
	up, _ := newFollowing(t, "", s)
	for range 2 {
		_, err := up.Connect(t.Context())
		if want := "upstream " + replica.ln.Addr().String() +
			": the Sentinels report it as the master, but its ROLE is different"; err == nil || err.Error() != want {
			t.Fatalf("%v, want %s", err, want)
		}
	}
	says.Store(sentinelAnswers(master.ln.Addr().String(), 1))
	for deadline := time.Now().Add(patience); ; time.Sleep(dialPause) {
		conn, err := up.Connect(t.Context())
		if err == nil {
			conn.Close()
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	if up.Term() != 1 {
		t.Errorf("term %d", up.Term())
	}
}

// TestLoneSentinel: a Sentinel is not trusted for ever, whatever its epoch, if most other Sentinels
// never learn of the failover that it reports.
func TestLoneSentinel(t *testing.T) {
	old, other := startRole(t, masterRole), startRole(t, masterRole)
	lone, says := startSentinel(t, sentinelAnswers(old.ln.Addr().String(), 1))
	s2, _ := startSentinel(t, sentinelAnswers(old.ln.Addr().String(), 1))
	s3, _ := startSentinel(t, sentinelAnswers(old.ln.Addr().String(), 1))
	up, _ := newFollowing(t, "", lone, s2, s3)
	finds := func(want *scripted) {
		t.Helper()
		if got, err := up.find(t.Context()); err != nil || got != want.ln.Addr().String() {
			t.Errorf("got %s, %v, want %s", got, err, want.ln.Addr())
		}
	}
	finds(old)
	answers := sentinelAnswers(other.ln.Addr().String(), 2)
	answers["MASTER"] = strings.Replace(answers["MASTER"], "$1\r\n2\r\n", "$20\r\n18446744073709551615\r\n", 1)
	says.Store(answers)
	finds(other)
	finds(other) // the other Sentinels may learn of it
	up.discovery.minoritySince = up.discovery.minoritySince.Add(-2 * spreadTime)
	finds(old)
	finds(old)
	says.Store(sentinelAnswers(other.ln.Addr().String(), 5))
	finds(other) // a new failover
	says.Store(map[string]string{})
	up.discovery.minoritySince = up.discovery.minoritySince.Add(-2 * spreadTime)
	finds(old)
}

// TestSuccessorThatCannotBeReached: a master's replies remain valid while its successor cannot be
// reached, and no longer.
func TestSuccessorThatCannotBeReached(t *testing.T) {
	old := startScripted(t, func(command string) string { // a version without ACL
		switch command {
		case "ROLE":
			return masterRole
		case "PING":
			return "+PONG\r\n"
		case "INFO server":
			return "$20\r\nredis_version:5.0.14\r\n"
		}
		return "-ERR unknown command\r\n"
	})
	gone := startRole(t, masterRole)
	_ = gone.ln.Close()
	closed := startScripted(t, func(string) string { return "-NOAUTH Authentication required.\r\n" })
	s, says := startSentinel(t, sentinelAnswers(old.ln.Addr().String(), 1))
	up, _ := newFollowing(t, "", s)
	up.Probe(t.Context())
	if !up.GrantsAll() {
		t.Fatal("the first master does not allow everything")
	}
	says.Store(sentinelAnswers(gone.ln.Addr().String(), 2))
	for range 2 {
		_, _ = up.find(t.Context())
		up.Probe(t.Context())
		if !up.GrantsAll() {
			t.Error("what the first master said is forgotten, and there is no other word")
		}
	}
	says.Store(sentinelAnswers(closed.ln.Addr().String(), 3))
	_, _ = up.find(t.Context())
	conn, err := up.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	if up.GrantsAll() {
		t.Error("the word of the first master holds for another one that can be reached")
	}
}
