package upstream

import (
	"errors"
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
func startSentinel(t *testing.T, answers map[string]string) (*scriptedServer, *atomic.Value) {
	var currentAnswers atomic.Value
	currentAnswers.Store(answers)
	return startScripted(t, func(command string) string {
		words := strings.Fields(command)
		if words[0] == "AUTH" {
			return "+OK\r\n"
		}
		return currentAnswers.Load().(map[string]string)[words[1]]
	}), &currentAnswers
}

// startRole starts a server with this role.
func startRole(t *testing.T, role string) *scriptedServer {
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

func newSentinelUpstream(t *testing.T, login string, sentinels ...*scriptedServer) (*Upstream, *logtest.Buffer) {
	t.Helper()
	var addrs []string
	for _, s := range sentinels {
		addrs = append(addrs, s.ln.Addr().String())
	}
	log := &logtest.Buffer{}
	up, err := NewWithSentinels("redis://nowhere:1", Sentinels{MasterName: "m", Addrs: addrs, Password: login}, testTimeout,
		slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(up.Close)
	return up, log
}

// TestInvalidSentinelReplies checks that an invalid reply of a Sentinel is an error.
func TestInvalidSentinelReplies(t *testing.T) {
	validReplies := sentinelAnswers("h:1", 3)
	for _, c := range []struct{ answer, details, want string }{
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
		{validReplies["GET-MASTER-ADDR-BY-NAME"], "", "the upstream closed the connection"},
		{validReplies["GET-MASTER-ADDR-BY-NAME"], "-NOPERM x\r\n", ""},
		{validReplies["GET-MASTER-ADDR-BY-NAME"], "*2\r\n$12\r\nconfig-epoch\r\n$1\r\nx\r\n", ""},
		{validReplies["GET-MASTER-ADDR-BY-NAME"], validReplies["MASTER"], ""},
	} {
		if c.details == "" && !strings.HasPrefix(c.want, "the up") {
			c.details = validReplies["MASTER"]
		}
		s, _ := startSentinel(t, map[string]string{"GET-MASTER-ADDR-BY-NAME": c.answer, "MASTER": c.details})
		// The server closes the connection in place of a long reply.
		if strings.HasPrefix(c.answer, "$9") {
			s = startScripted(t, func(string) string { return c.answer[:0] })
		}
		up, _ := newSentinelUpstream(t, "", s)
		addr, err := up.Locate(t.Context())
		switch {
		case c.want == "" && (err != nil || addr != "h:1"):
			t.Errorf("%q, %q: %s, %v", c.answer, c.details, addr, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) ||
			!strings.HasPrefix(err.Error(), "no Sentinel returned the address of m: ")):
			t.Errorf("%q, %q: %s, %v", c.answer, c.details, addr, err)
		}
	}
}

func TestChooseReport(t *testing.T) {
	a1, a2, b1, b2 := masterReport{"a:1", 1}, masterReport{"a:1", 2}, masterReport{"b:1", 1}, masterReport{"b:1", 2}
	for _, c := range []struct {
		all   []masterReport
		known string
		want  masterReport
	}{
		{nil, "", masterReport{}},
		{[]masterReport{a1}, "", a1},
		{[]masterReport{a1, b2, a1}, "a:1", b2}, // the latest epoch, even against a majority
		{[]masterReport{b2, a1, a1}, "", b2},
		{[]masterReport{a1, b1, b1}, "a:1", b1}, // within an epoch, the majority's report
		{[]masterReport{b1, b1, a1}, "a:1", b1},
		{[]masterReport{a2, b2}, "b:1", b2}, // without a majority, the known master remains
		{[]masterReport{b2, a2}, "b:1", b2},
	} {
		if got := chooseReport(c.all, c.known); got != c.want {
			t.Errorf("%v, %q: %v, want %v", c.all, c.known, got, c.want)
		}
	}
}

// TestFollowing checks that a report of a failover is adopted even if only one Sentinel sends it. A
// Sentinel with an older report changes nothing.
func TestFollowing(t *testing.T) {
	old, new := startRole(t, masterRole), startRole(t, masterRole)
	s1, replies1 := startSentinel(t, sentinelAnswers(old.ln.Addr().String(), 1))
	s2, replies2 := startSentinel(t, sentinelAnswers(old.ln.Addr().String(), 1))
	up, log := newSentinelUpstream(t, "secret", s1, s2)
	failovers := 0
	up.OnFailover(func() { failovers++ })
	if up.Name() != "m" {
		t.Errorf("unknown, it is called %s", up.Name())
	}
	connectTo := func(want *scriptedServer) {
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
	conn, err := up.OpenConn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.CheckCurrent(t.Context()); err != nil {
		t.Error(err)
	}
	replies1.Store(sentinelAnswers(new.ln.Addr().String(), 2))
	// CheckCurrent asks the Sentinels.
	if err := conn.CheckCurrent(t.Context()); !errors.Is(err, ErrFailedOver) {
		t.Errorf("after a failover: %v", err)
	}
	connectTo(new)
	if failovers != 1 || up.Term() != 1 || !strings.Contains(log.String(),
		"from="+old.ln.Addr().String()+" to="+new.ln.Addr().String()) {
		t.Errorf("%d moves, term %d, logged %s", failovers, up.Term(), log.String())
	}
	// The first Sentinel is down, and the other Sentinel has not heard of the failover.
	replies1.Store(map[string]string{})
	if _, err := up.findMaster(t.Context()); err != nil {
		t.Fatal(err)
	}
	connectTo(new)
	replies2.Store(map[string]string{})
	if err := conn.CheckCurrent(t.Context()); err == nil || errors.Is(err, ErrFailedOver) {
		t.Errorf("no Sentinel answers: %v", err)
	}
	for range 2 {
		if _, err := up.findMaster(t.Context()); err == nil {
			t.Error("no Sentinel found it")
		}
	}
	connectTo(new) // the new master still serves
	if strings.Count(log.String(), "no Sentinel returned") != 1 || strings.Contains(log.String(), "secret") {
		t.Errorf("logged %s", log.String())
	}
}

// TestFollowingAsksForTheRole checks that a server that reports a role other than master is not
// used, and that the Sentinels are asked again. A server that reports no role is used.
func TestFollowingAsksForTheRole(t *testing.T) {
	replica, master := startRole(t, replicaRole), startRole(t, "-NOPERM no\r\n")
	s, replies := startSentinel(t, sentinelAnswers(replica.ln.Addr().String(), 1))
	up, _ := newSentinelUpstream(t, "", s)
	for range 2 {
		_, err := up.Connect(t.Context())
		if want := "upstream " + replica.ln.Addr().String() +
			": the Sentinels report it as the master, but its ROLE is different"; err == nil || err.Error() != want {
			t.Fatalf("%v, want %s", err, want)
		}
	}
	replies.Store(sentinelAnswers(master.ln.Addr().String(), 1))
	for deadline := time.Now().Add(testTimeout); ; time.Sleep(dialPause) {
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

// TestLoneSentinel lets a Sentinel report a failover that most other Sentinels never learn of. Even
// with the latest epoch, the Sentinel is not trusted forever.
func TestLoneSentinel(t *testing.T) {
	old, other := startRole(t, masterRole), startRole(t, masterRole)
	lone, replies := startSentinel(t, sentinelAnswers(old.ln.Addr().String(), 1))
	s2, _ := startSentinel(t, sentinelAnswers(old.ln.Addr().String(), 1))
	s3, _ := startSentinel(t, sentinelAnswers(old.ln.Addr().String(), 1))
	up, _ := newSentinelUpstream(t, "", lone, s2, s3)
	checkMaster := func(want *scriptedServer) {
		t.Helper()
		if got, err := up.findMaster(t.Context()); err != nil || got != want.ln.Addr().String() {
			t.Errorf("got %s, %v, want %s", got, err, want.ln.Addr())
		}
	}
	checkMaster(old)
	answers := sentinelAnswers(other.ln.Addr().String(), 2)
	answers["MASTER"] = strings.Replace(answers["MASTER"], "$1\r\n2\r\n", "$20\r\n18446744073709551615\r\n", 1)
	replies.Store(answers)
	checkMaster(other)
	checkMaster(other) // the other Sentinels may still learn of the failover
	up.discovery.minoritySince = up.discovery.minoritySince.Add(-2 * spreadTime)
	checkMaster(old)
	checkMaster(old)
	replies.Store(sentinelAnswers(other.ln.Addr().String(), 5))
	checkMaster(other) // a new failover
	replies.Store(map[string]string{})
	up.discovery.minoritySince = up.discovery.minoritySince.Add(-2 * spreadTime)
	checkMaster(old)
}

// TestNewMasterThatCannotBeReached checks that an old master's replies remain valid until the new
// master has been reached.
func TestNewMasterThatCannotBeReached(t *testing.T) {
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
	unreachable := startRole(t, masterRole)
	_ = unreachable.ln.Close()
	closed := startScripted(t, func(string) string { return "-NOAUTH Authentication required.\r\n" })
	s, replies := startSentinel(t, sentinelAnswers(old.ln.Addr().String(), 1))
	up, _ := newSentinelUpstream(t, "", s)
	up.Probe(t.Context())
	if !up.GrantsAll() {
		t.Fatal("the first master does not allow everything")
	}
	replies.Store(sentinelAnswers(unreachable.ln.Addr().String(), 2))
	for range 2 {
		_, _ = up.findMaster(t.Context())
		up.Probe(t.Context())
		if !up.GrantsAll() {
			t.Error("the replies of the first master are forgotten before another master was reached")
		}
	}
	replies.Store(sentinelAnswers(closed.ln.Addr().String(), 3))
	_, _ = up.findMaster(t.Context())
	conn, err := up.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	if up.GrantsAll() {
		t.Error("the replies of the first master apply to another master that was reached")
	}
}
