//go:build integration

package operate

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"redlock-proxy/integration/harness"
	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
	"redlock-proxy/internal/redistest/faultlink"
)

// The proxy has seven views of whether locks are available; taking a lock is the eighth. All views
// agree in every situation that an operator may meet.

// causes holds the result of each view: granted if locks are available, otherwise the cause.
type causes map[string]string

// granted means that locks are available.
const granted = ""

// testBed is a proxy with its servers, for consecutive situations.
type testBed struct {
	t        *testing.T
	masters  []*redistest.Server
	upstream *redistest.Server // nil: no upstream
	proxy    *harness.Proxy
	admin    string
	// config is the path of the configuration file; settings are its lines that all proxies share.
	config, settings string
	lockCount        int
	// link is the link of secondProxy to the upstream. moveResult receives the result of the last of
	// the moves of the locks, after isLastMove is set.
	link        *faultlink.Link
	secondProxy *harness.Proxy
	isLastMove  atomic.Bool
	moveResult  chan error
}

// newTestBed starts three masters and a proxy for them.
func newTestBed(t *testing.T, upstream *redistest.Server, settings ...string) *testBed {
	t.Helper()
	s := &testBed{t: t, upstream: upstream}
	for range 3 {
		s.masters = append(s.masters, kit.StartRedis(t))
	}
	s.settings = "master: [" + strings.Join(redistest.URLs(s.masters), ", ") + "]\nmaster-timeout: 500ms\n" +
		strings.Join(settings, "\n") + "\n"
	proxySettings := []string{"admin: 127.0.0.1:0", "upstream-timeout: 1s"}
	if upstream != nil {
		proxySettings = append(proxySettings, "upstream: redis://app:secret@"+upstream.Addr())
	}
	s.config = s.writeConfig(proxySettings...)
	s.proxy = kit.StartConfigured(t, s.config)
	s.admin = adminAddr(t, s.proxy)
	return s
}

// writeConfig writes a configuration file with the settings of the test bed and the given settings.
func (s *testBed) writeConfig(settings ...string) string {
	s.t.Helper()
	name := filepath.Join(s.t.TempDir(), "proxy.yaml")
	text := s.settings + "listen: 127.0.0.1:" + kit.FreePort(s.t) + "\n" + strings.Join(settings, "\n") + "\n"
	kit.Must(s.t, os.WriteFile(name, []byte(text), 0o600))
	return name
}

// situation is a state of the servers of a test bed.
type situation struct {
	name string
	// begin causes the situation, and end ends it; nil does nothing.
	begin, end func(s *testBed) error
	// want is the beginning of the cause in all views.
	want string
	// unsafe is set if check exits with 2, for a reason other than unavailable locks.
	unsafe bool
}

// run checks situations one after the other. A situation with an end function ends before the next
// one. With -short, run checks only some situations.
func (s *testBed) run(t *testing.T, situations []situation) {
	t.Helper()
	interval := len(situations) / redistest.SampleCount(len(situations))
	for i, current := range situations {
		if i%interval != interval/2 {
			continue
		}
		t.Run(current.name, func(t *testing.T) {
			s.t = t
			if current.end != nil {
				t.Cleanup(func() { kit.NoError(t, current.end(s)) })
			}
			if current.begin != nil {
				kit.Must(t, current.begin(s))
			}
			kit.Eventually(t, func() error { return s.checkViews(current) })
		})
	}
}

// checkViews returns an error unless all views agree on a situation.
func (s *testBed) checkViews(current situation) error {
	results := causes{}
	code := s.runCheck(results)
	for _, view := range []func(causes){s.runHealthcheck, s.queryReadyz, s.queryStatusPage, s.queryMetrics, s.queryInfo, s.queryHealth} {
		view(results)
	}
	var failures []error
	for name, cause := range results {
		if current.want == granted && cause != granted || !strings.HasPrefix(cause, current.want) {
			failures = append(failures, fmt.Errorf("%s: %q, want %q", name, cause, current.want))
		}
	}
	if wantCode := map[bool][]int{true: {2}, false: {0, 4}}[current.unsafe]; current.want == granted &&
		!slices.Contains(wantCode, code) ||
		current.want != granted && !current.unsafe && code != 3 {
		failures = append(failures, fmt.Errorf("check ends with %d", code))
	}
	if len(failures) == 0 {
		if reply := s.lock(); (reply == granted) != (current.want == granted) {
			failures = append(failures, fmt.Errorf("a lock: %q, want %q", reply, current.want))
		}
	}
	return errors.Join(failures...)
}

func (s *testBed) runCommand(args ...string) (code int, output string) {
	got := runProxy(s.t, args...)
	return got.code, got.stdout + got.stderr
}

func (s *testBed) runCheck(results causes) (code int) {
	code, output := s.runCommand("check", "--json", "--config", s.config, "--master-timeout", "500ms")
	var report struct {
		Available bool
		Cause     string
	}
	if err := json.Unmarshal([]byte(output), &report); err != nil || report.Available != (report.Cause == "") {
		report.Cause = "ERR " + output
	}
	results["check"] = report.Cause
	return code
}

func (s *testBed) runHealthcheck(results causes) {
	code, output := s.runCommand("healthcheck", "--ready", "--config", s.config)
	cause, notReady := strings.CutPrefix(strings.TrimSpace(output), "redlock-proxy: not ready: ")
	if (code == 0) != (output == "") || code == 3 && !notReady {
		cause = fmt.Sprintf("ERR %d %s", code, output)
	}
	results["healthcheck --ready"] = cause
}

func (s *testBed) queryReadyz(results causes) {
	code, body, err := getAdminPage(s.admin, "/readyz")
	cause := fmt.Sprintf("ERR %d %s %v", code, body, err)
	for line := range strings.SplitSeq(body, "\n") {
		if text, isFailure := strings.CutPrefix(line, "[-]locks: "); isFailure && code == 503 {
			cause = text
		}
		if code == 200 && (strings.HasPrefix(line, "[+]locks: available") ||
			strings.HasPrefix(line, "[!]locks: available")) {
			cause = granted
		}
	}
	results["/readyz"] = cause
}

func (s *testBed) queryStatusPage(results causes) {
	_, body, err := getAdminPage(s.admin, "/status/v1")
	var status struct {
		Quorum struct {
			OK    bool
			Cause string
		}
	}
	if err == nil {
		err = json.Unmarshal([]byte(body), &status)
	}
	if err != nil || status.Quorum.OK != (status.Quorum.Cause == "") {
		status.Quorum.Cause = fmt.Sprintf("ERR %s %v", body, err)
	}
	results["the page"] = status.Quorum.Cause
}

// queryMetrics adds the view of the metrics. The metrics name no cause, so this view takes the
// cause of the status page.
func (s *testBed) queryMetrics(results causes) {
	switch quorum := metricsOf(s.t, s.admin)["redlock_quorum"]; {
	case quorum == 1:
		results["metrics"] = granted
	case results["the page"] == granted:
		results["metrics"] = "ERR redlock_quorum is 0"
	default:
		results["metrics"] = results["the page"]
	}
}

func (s *testBed) queryInfo(results causes) {
	fields := s.queryFields("PROXY", "INFO")
	if results["PROXY INFO"] = fields["redlock_unavailable_cause"]; (fields["redlock_available"] == "yes") != (fields["redlock_unavailable_cause"] == "") {
		results["PROXY INFO"] = fmt.Sprint("ERR ", fields)
	}
}

func (s *testBed) queryHealth(results causes) {
	fields := s.queryFields("PROXY", "HEALTH")
	if results["PROXY HEALTH"] = fields["cause"]; (fields["ready"] == "yes") != (fields["cause"] == "") {
		results["PROXY HEALTH"] = fmt.Sprint("ERR ", fields)
	}
}

// queryFields sends a command to the proxy, and returns the fields of its INFO-like reply.
func (s *testBed) queryFields(command ...string) map[string]string {
	s.t.Helper()
	fields := map[string]string{}
	for line := range strings.SplitSeq(fmt.Sprint(kit.Do(s.t, kit.Connect(s.t, s.proxy), command...)), "\r\n") {
		name, value, _ := strings.Cut(line, ":")
		fields[name] = value
	}
	return fields
}

// lockTimeout is the time that a client waits for a free lock.
const lockTimeout = 3 * time.Second

// lock takes a lock with a new client, and returns granted or the error. With an upstream, it uses
// SET NX, because LOCK is not available if the locks may be at the upstream.
func (s *testBed) lock() string {
	client, err := redistest.Dial(s.proxy.Addr(), lockTimeout)
	if err != nil {
		return err.Error()
	}
	defer client.Close()
	s.lockCount++
	key := "lock:" + strconv.Itoa(s.lockCount)
	words := []string{"LOCK", key, "t", "PX", "1000"}
	if s.upstream != nil {
		words = []string{"SET", key, "t", "NX", "PX", "1000"}
	}
	reply, err := client.Do(words...)
	if ms, ok := reply.(int64); err == nil && (ok && ms > 0 || reply == "OK") {
		return granted
	}
	return fmt.Sprint("ERR ", reply, err)
}

// eachMaster calls do for the given number of masters, from the first one.
func (s *testBed) eachMaster(masters int, do func(*redistest.Server) error) error {
	for _, m := range s.masters[:masters] {
		if err := do(m); err != nil {
			return err
		}
	}
	return nil
}

// onMasters returns a function that calls do for the given number of masters.
func onMasters(masters int, do func(*redistest.Server) error) func(*testBed) error {
	return func(s *testBed) error { return s.eachMaster(masters, do) }
}

// atUpstream returns a function that calls do for the upstream.
func atUpstream(do func(*redistest.Server) error) func(*testBed) error {
	return func(s *testBed) error { return do(s.upstream) }
}

// sendCommands returns a function that sends commands, separated by |, to a server.
func sendCommands(commands string) func(*redistest.Server) error {
	return func(server *redistest.Server) error {
		for command := range strings.SplitSeq(commands, "|") {
			if err := kit.SendToMaster(server, strings.Fields(command)...); err != nil {
				return fmt.Errorf("%s: %w", command, err)
			}
		}
		return nil
	}
}

func replicateFrom(primary *redistest.Server) func(*redistest.Server) error {
	host, port, _ := net.SplitHostPort(primary.Addr())
	return sendCommands("REPLICAOF " + host + " " + port)
}

const (
	setFull, setNotFull              = "CONFIG SET maxmemory 1", "CONFIG SET maxmemory 0"
	requireReplica, requireNoReplica = "CONFIG SET min-replicas-to-write 1", "CONFIG SET min-replicas-to-write 0"
	pauseWrites, resumeWrites        = "CLIENT PAUSE 600000 WRITE", "CLIENT UNPAUSE"
	denySet, allowSet                = "ACL SETUSER default -set", "ACL SETUSER default +set"
	denyEval, allowEval              = "ACL SETUSER default -eval -evalsha", "ACL SETUSER default +eval +evalsha"
	setEvicting, setNoEviction       = "CONFIG SET maxmemory-policy allkeys-lru", "CONFIG SET maxmemory-policy noeviction"
)

// masterSituations returns situations of three masters, with or without an upstream.
func masterSituations() []situation {
	const available, unavailable = "", "1 of 3 masters vote, 2 needed"
	return []situation{
		{name: "all is well"},
		{"one master is down", onMasters(1, (*redistest.Server).Kill), onMasters(1, (*redistest.Server).Restart), available, false},
		{"two masters are down", onMasters(2, (*redistest.Server).Kill), onMasters(2, (*redistest.Server).Restart), unavailable, false},
		{"one master hangs", onMasters(1, (*redistest.Server).Pause), onMasters(1, (*redistest.Server).Continue), available, false},
		{"two masters hang", onMasters(2, (*redistest.Server).Pause), onMasters(2, (*redistest.Server).Continue), unavailable, false},
		{"one master is full", onMasters(1, sendCommands(setFull)), onMasters(1, sendCommands(setNotFull)), available, false},
		{"two masters are full", onMasters(2, sendCommands(setFull)), onMasters(2, sendCommands(setNotFull)), unavailable, false},
		{"two masters lack replicas", onMasters(2, sendCommands(requireReplica)), onMasters(2, sendCommands(requireNoReplica)), unavailable, false},
		{"writes are paused on two masters", onMasters(2, sendCommands(pauseWrites)), onMasters(2, sendCommands(resumeWrites)), unavailable, false},
		{"two masters grant no SET", onMasters(2, sendCommands(denySet)), onMasters(2, sendCommands(allowSet)), unavailable, false},
		{"two masters grant no EVAL", onMasters(2, sendCommands(denyEval)), onMasters(2, sendCommands(allowEval)), unavailable, false},
		{"one master evicts", onMasters(1, sendCommands(setEvicting)), onMasters(1, sendCommands(setNoEviction)), available, true},
		{"two masters evict", onMasters(2, sendCommands(setEvicting)), onMasters(2, sendCommands(setNoEviction)), unavailable, true},
	}
}

// TestAvailabilityInAllViews checks that all views agree in each situation.
func TestAvailabilityInAllViews(t *testing.T) {
	redistest.RequireFeature(t, "CLIENT PAUSE WRITE", "6.2")
	t.Run("a lock server", func(t *testing.T) {
		t.Parallel()
		s := newTestBed(t, nil, "fresh-start: true")
		s.run(t, append(masterSituations(),
			situation{name: "one master is a replica",
				begin: func(s *testBed) error { return replicateFrom(s.masters[2])(s.masters[0]) },
				end:   onMasters(1, sendCommands("REPLICAOF NO ONE")), unsafe: true},
		))
		if testing.Short() {
			return
		}
		s.run(t, []situation{
			{name: "a lock is held for an hour", begin: func(s *testBed) error {
				client := kit.Connect(s.t, s.proxy)
				kit.WantGrant(s.t, client, "LOCK", "long", "t", "PX", "3600000")
				return nil
			}},
			{name: "two masters lost their data", begin: onMasters(2, (*redistest.Server).Restart),
				want: "1 of 3 masters vote, 2 needed"},
			{name: "and the third, too", begin: func(s *testBed) error { return sendCommands("FLUSHALL")(s.masters[2]) },
				want: "0 of 3 masters vote, 2 needed"},
			{name: "it is told for how long", begin: (*testBed).awaitSameQuarantine, want: "0 of 3 masters vote, 2 needed"},
		})
	})
	t.Run("without the guard", func(t *testing.T) {
		t.Parallel()
		// All masters vote, even without their data.
		newTestBed(t, nil, "guard: false").run(t, append(masterSituations()[:12],
			situation{"two masters evict", onMasters(2, sendCommands(setEvicting)), onMasters(2, sendCommands(setNoEviction)), granted, true}))
	})
	t.Run("new masters", func(t *testing.T) {
		t.Parallel()
		newTestBed(t, nil).run(t, []situation{
			{name: "that nobody initialized", want: "0 of 3 masters vote, 2 needed"},
			{name: "that are initialized", begin: func(s *testBed) error {
				code, out := s.runCommand("init", "--longest-ttl", "0s", "--config", s.config)
				if code != 0 {
					return errors.New(out)
				}
				return nil
			}},
		})
	})
	t.Run("before and after a move", func(t *testing.T) {
		t.Parallel()
		upstream, otherRedis := kit.StartRedis(t), kit.StartRedis(t)
		kit.Must(t, kit.SendToMaster(upstream, "ACL", "SETUSER", "app", "on", ">secret", "~*", "&*", "+@all"))
		s := newTestBed(t, upstream, "fresh-start: true", "lock-keys: ['lock:*']", "move-from-upstream: true",
			"share-upstream-login: true")
		const refuses = "the upstream, which holds the locks, refuses writes: "
		s.run(t, slices.Concat(masterSituations()[:4], []situation{
			{"the upstream is down", atUpstream((*redistest.Server).Kill), func(s *testBed) error {
				kit.Must(t, s.upstream.Restart())
				return kit.SendToMaster(s.upstream, "ACL", "SETUSER", "app", "on", ">secret", "~*", "&*", "+@all")
			}, refuses + "connection refused", false},
			{"the upstream hangs", atUpstream((*redistest.Server).Pause), atUpstream((*redistest.Server).Continue),
				refuses + "no answer in time", false},
			{"the upstream is full", atUpstream(sendCommands(setFull)), atUpstream(sendCommands(setNotFull)), refuses + "OOM ", false},
			{"the upstream lacks replicas", atUpstream(sendCommands(requireReplica)), atUpstream(sendCommands(requireNoReplica)), refuses + "NOREPLICAS ", false},
			{"writes are paused at the upstream", atUpstream(sendCommands(pauseWrites)), atUpstream(sendCommands(resumeWrites)),
				refuses + "no answer in time", false},
			{"the upstream is a replica", atUpstream(replicateFrom(otherRedis)), atUpstream(sendCommands("REPLICAOF NO ONE")),
				refuses + "READONLY ", false},
			{"the upstream grants no SET", atUpstream(sendCommands("ACL SETUSER app -set")),
				atUpstream(sendCommands("ACL SETUSER app +set")), refuses, false},
			{"the upstream grants locks alone", atUpstream(sendCommands("ACL SETUSER app resetkeys ~lock:*")),
				atUpstream(sendCommands("ACL SETUSER app ~*")), granted, false},
			{"the locks are being moved", (*testBed).beginMove, (*testBed).endMove,
				"the locks are being moved to the masters: ", false},
		}))
		if testing.Short() {
			return
		}
		s.run(t, []situation{
			{"the locks have moved", func(s *testBed) error { return s.move() }, nil, granted, false},
			{"the upstream is full after the move", atUpstream(sendCommands(setFull)), atUpstream(sendCommands(setNotFull)), granted, false},
			{"writes are paused at the upstream after the move", atUpstream(sendCommands(pauseWrites)), atUpstream(sendCommands(resumeWrites)),
				granted, false},
			{"the upstream is down after the move", atUpstream((*redistest.Server).Kill), func(s *testBed) error {
				kit.Must(t, s.upstream.Restart())
				return kit.SendToMaster(s.upstream, "ACL", "SETUSER", "app", "on", ">secret", "~*", "&*", "+@all")
			}, granted, false},
			{"two masters are full after the move", onMasters(2, sendCommands(setFull)), onMasters(2, sendCommands(setNotFull)),
				"1 of 3 masters vote, 2 needed", false},
			{"two masters grant the proxies' own keys alone", onMasters(2, sendCommands("ACL SETUSER default resetkeys ~redlock-proxy:*")),
				onMasters(2, sendCommands("ACL SETUSER default ~*")), "1 of 3 masters vote, 2 needed", false},
			{"two masters hang after the move", onMasters(2, (*redistest.Server).Pause), onMasters(2, (*redistest.Server).Continue),
				"1 of 3 masters vote, 2 needed", false},
			{"the locks have moved back", func(s *testBed) error { return s.move("--back") }, nil, granted, false},
			{"the upstream is full after they came back", atUpstream(sendCommands(setFull)), atUpstream(sendCommands(setNotFull)), refuses + "OOM ", false},
		})
	})
}

// hasWaited reports whether a move failed because it waited in vain for secondProxy.
func hasWaited(err error) bool {
	return err != nil && strings.Contains(err.Error(), "did not pause commands")
}

// beginMove begins to move the locks. A second proxy, which cannot reach the upstream, takes part, so
// the move waits for it. On a busy machine one move may end before all views were queried, so the next
// one begins at once.
func (s *testBed) beginMove() error {
	s.link = kit.StartLink(s.t, s.upstream)
	s.secondProxy = kit.StartConfigured(s.t, s.writeConfig("upstream: redis://app:secret@"+s.link.Addr(), "upstream-timeout: 1m"))
	if err := s.link.Cut(); err != nil {
		return err
	}
	s.isLastMove.Store(false)
	s.moveResult = make(chan error, 1)
	program, err := harness.BuildProxy(s.t.Context())
	kit.Must(s.t, err)
	go func() {
		var err error
		for again := true; again; again = hasWaited(err) && !s.isLastMove.Load() {
			var out []byte
			if out, err = exec.Command(program, "move", "--even-if-others", "--addr", s.proxy.Addr()).CombinedOutput(); err != nil {
				err = errors.New(string(out))
			}
		}
		s.moveResult <- err
	}()
	return nil
}

// endMove waits until the last move has failed because of the second proxy, or the locks have moved.
// It then kills the second proxy.
func (s *testBed) endMove() error {
	s.isLastMove.Store(true)
	if err := <-s.moveResult; err != nil && !hasWaited(err) {
		return err
	}
	return s.secondProxy.Kill()
}

// move moves the locks.
func (s *testBed) move(flags ...string) error {
	var code int
	var output string
	// The masters count a killed proxy as running for a while.
	for end := time.Now().Add(kit.WaitLimit); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if code, output = s.runCommand(append([]string{"move", "--addr", s.proxy.Addr(), "--even-if-others"},
			flags...)...); code == 0 {
			return nil
		}
	}
	return errors.New(output)
}

// awaitSameQuarantine waits until check and PROXY INFO report the same remaining time of
// quarantine.
func (s *testBed) awaitSameQuarantine() error {
	kit.Eventually(s.t, func() error {
		_, output := s.runCommand("check", "--json", "--config", s.config, "--master-timeout", "500ms")
		var report struct {
			Masters []struct {
				ReadyIn float64 `json:"ready_in_seconds"`
			}
		}
		if err := json.Unmarshal([]byte(output), &report); err != nil {
			return err
		}
		info := fmt.Sprint(s.queryFields("PROXY", "INFO"))
		for i, master := range report.Masters {
			_, text, _ := strings.Cut(info, fmt.Sprintf("redlock_master%d:", i))
			_, text, _ = strings.Cut(text, "ready_in_seconds=")
			text, _, _ = strings.Cut(text, ",")
			if remaining, err := strconv.ParseFloat(text, 64); err != nil || math.Abs(remaining-master.ReadyIn) > 5 || remaining < 3000 {
				return fmt.Errorf("master %d is ready in %s s by PROXY INFO, in %v s by check", i, text, master.ReadyIn)
			}
		}
		return nil
	})
	return nil
}
