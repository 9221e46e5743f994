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
	"testing"
	"time"

	"redlock-proxy/integration/harness"
	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
	"redlock-proxy/internal/redistest/faultlink"
)

// The proxy reports in seven ways whether locks are available; taking a lock is the eighth. All
// ways agree in every situation that an operator may meet.

// views holds the result of each way: granted if locks are available, otherwise the cause.
type views map[string]string

// granted means that locks are available.
const granted = ""

// stage is a proxy with its servers, for consecutive situations.
type stage struct {
	t        *testing.T
	masters  []*redistest.Server
	upstream *redistest.Server // nil: none
	proxy    *harness.Proxy
	admin    string
	// config is the path of the configuration file; settings are its lines that all proxies share.
	config, settings string
	locked           int
	// link is the second proxy's link to the upstream. other is this proxy. moved receives the
	// result of a move of the locks.
	link  *faultlink.Link
	other *harness.Proxy
	moved chan error
}

// newStage starts three masters and a proxy for them.
func newStage(t *testing.T, upstream *redistest.Server, settings ...string) *stage {
	t.Helper()
	s := &stage{t: t, upstream: upstream}
	for range 3 {
		s.masters = append(s.masters, kit.StartRedis(t))
	}
	s.settings = "master: [" + strings.Join(redistest.URLs(s.masters), ", ") + "]\nmaster-timeout: 500ms\n" +
		strings.Join(settings, "\n") + "\n"
	own := []string{"admin: 127.0.0.1:0", "upstream-timeout: 1s"}
	if upstream != nil {
		own = append(own, "upstream: redis://app:secret@"+upstream.Addr())
	}
	s.config = s.file(own...)
	s.proxy = kit.StartConfigured(t, s.config)
	s.admin = adminOf(t, s.proxy)
	return s
}

// file writes a configuration file with the settings of the stage and the given ones.
func (s *stage) file(more ...string) string {
	s.t.Helper()
	name := filepath.Join(s.t.TempDir(), "proxy.yaml")
	text := s.settings + "listen: 127.0.0.1:" + kit.FreePort(s.t) + "\n" + strings.Join(more, "\n") + "\n"
	kit.Must(s.t, os.WriteFile(name, []byte(text), 0o600))
	return name
}

// situation is an event on a stage.
type situation struct {
	name string
	// play causes the situation, and end ends it; nil does nothing.
	play, end func(s *stage) error
	// want is the beginning of the cause in all views.
	want string
	// unsafe is set if check exits with 2, for a reason other than unavailable locks.
	unsafe bool
}

// run plays situations one after the other. Each ends before the next one. With -short, it plays
// only some.
func (s *stage) run(t *testing.T, all []situation) {
	t.Helper()
	every := len(all) / redistest.Sampled(len(all))
	for i, one := range all {
		if i%every != every/2 {
			continue
		}
		t.Run(one.name, func(t *testing.T) {
			s.t = t
			if one.end != nil {
				t.Cleanup(func() { kit.NoError(t, one.end(s)) })
			}
			if one.play != nil {
				kit.Must(t, one.play(s))
			}
			kit.Soon(t, func() error { return s.checkViews(one) })
		})
	}
}

// checkViews returns an error unless all views agree on a situation.
func (s *stage) checkViews(one situation) error {
	seen := views{}
	code := s.check(seen)
	for _, look := range []func(views){s.healthcheck, s.readyz, s.page, s.metrics, s.info, s.health} {
		look(seen)
	}
	var wrong []error
	for way, cause := range seen {
		if one.want == granted && cause != granted || !strings.HasPrefix(cause, one.want) {
			wrong = append(wrong, fmt.Errorf("%s: %q, want %q", way, cause, one.want))
		}
	}
	if wantCode := map[bool][]int{true: {2}, false: {0, 4}}[one.unsafe]; one.want == granted &&
		!slices.Contains(wantCode, code) ||
		one.want != granted && !one.unsafe && code != 3 {
		wrong = append(wrong, fmt.Errorf("check ends with %d", code))
	}
	if len(wrong) == 0 {
		if reply := s.lock(); (reply == granted) != (one.want == granted) {
			wrong = append(wrong, fmt.Errorf("a lock: %q, want %q", reply, one.want))
		}
	}
	return errors.Join(wrong...)
}

func (s *stage) command(args ...string) (code int, out string) {
	got := runProxy(s.t, args...)
	return got.code, got.stdout + got.stderr
}

func (s *stage) check(seen views) (code int) {
	code, out := s.command("check", "--json", "--config", s.config, "--master-timeout", "500ms")
	var said struct {
		Available bool
		Cause     string
	}
	if err := json.Unmarshal([]byte(out), &said); err != nil || said.Available != (said.Cause == "") {
		said.Cause = "ERR " + out
	}
	seen["check"] = said.Cause
	return code
}

func (s *stage) healthcheck(seen views) {
	code, out := s.command("healthcheck", "--ready", "--config", s.config)
	cause, said := strings.CutPrefix(strings.TrimSpace(out), "redlock-proxy: not ready: ")
	if (code == 0) != (out == "") || code == 3 && !said {
		cause = fmt.Sprintf("ERR %d %s", code, out)
	}
	seen["healthcheck --ready"] = cause
}

func (s *stage) readyz(seen views) {
	code, body, err := askAdmin(s.admin, "/readyz")
	cause := fmt.Sprintf("ERR %d %s %v", code, body, err)
	for line := range strings.SplitSeq(body, "\n") {
		if text, failed := strings.CutPrefix(line, "[-]locks: "); failed && code == 503 {
			cause = text
		}
		if code == 200 && (strings.HasPrefix(line, "[+]locks: available") ||
			strings.HasPrefix(line, "[!]locks: available")) {
			cause = granted
		}
	}
	seen["/readyz"] = cause
}

func (s *stage) page(seen views) {
	_, body, err := askAdmin(s.admin, "/status/v1")
	var said struct {
		Quorum struct {
			OK    bool
			Cause string
		}
	}
	if err == nil {
		err = json.Unmarshal([]byte(body), &said)
	}
	if err != nil || said.Quorum.OK != (said.Quorum.Cause == "") {
		said.Quorum.Cause = fmt.Sprintf("ERR %s %v", body, err)
	}
	seen["the page"] = said.Quorum.Cause
}

// metrics adds the view of the metrics. They have no cause, so it takes the cause of the page.
func (s *stage) metrics(seen views) {
	switch quorum := metricsOf(s.t, s.admin)["redlock_quorum"]; {
	case quorum == 1:
		seen["metrics"] = granted
	case seen["the page"] == granted:
		seen["metrics"] = "ERR redlock_quorum is 0"
	default:
		seen["metrics"] = seen["the page"]
	}
}

func (s *stage) info(seen views) {
	told := s.ask("PROXY", "INFO")
	if seen["PROXY INFO"] = told["redlock_unavailable_cause"]; (told["redlock_available"] == "yes") != (told["redlock_unavailable_cause"] == "") {
		seen["PROXY INFO"] = fmt.Sprint("ERR ", told)
	}
}

func (s *stage) health(seen views) {
	told := s.ask("PROXY", "HEALTH")
	if seen["PROXY HEALTH"] = told["cause"]; (told["ready"] == "yes") != (told["cause"] == "") {
		seen["PROXY HEALTH"] = fmt.Sprint("ERR ", told)
	}
}

// ask sends a command to the proxy, and returns the fields of its INFO-like reply.
func (s *stage) ask(command ...string) map[string]string {
	s.t.Helper()
	told := map[string]string{}
	for line := range strings.SplitSeq(fmt.Sprint(kit.Do(s.t, kit.Connect(s.t, s.proxy), command...)), "\r\n") {
		name, value, _ := strings.Cut(line, ":")
		told[name] = value
	}
	return told
}

// lockPatience is the time that a client waits for a free lock.
const lockPatience = 3 * time.Second

// lock takes a lock with a new client, and returns granted or the error. LOCK is not available if
// the locks may be at the upstream.
func (s *stage) lock() string {
	client, err := redistest.Dial(s.proxy.Addr(), lockPatience)
	if err != nil {
		return err.Error()
	}
	defer client.Close()
	s.locked++
	key := "lock:" + strconv.Itoa(s.locked)
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

// each calls do for the given number of masters, from the first one.
func (s *stage) each(masters int, do func(*redistest.Server) error) error {
	for _, m := range s.masters[:masters] {
		if err := do(m); err != nil {
			return err
		}
	}
	return nil
}

// on returns a play that calls do for the given number of masters.
func on(masters int, do func(*redistest.Server) error) func(*stage) error {
	return func(s *stage) error { return s.each(masters, do) }
}

// atUpstream returns a play that calls do for the upstream.
func atUpstream(do func(*redistest.Server) error) func(*stage) error {
	return func(s *stage) error { return do(s.upstream) }
}

// told returns a function that sends commands, separated by |, to a server.
func told(commands string) func(*redistest.Server) error {
	return func(server *redistest.Server) error {
		for command := range strings.SplitSeq(commands, "|") {
			if err := kit.Tell(server, strings.Fields(command)...); err != nil {
				return fmt.Errorf("%s: %w", command, err)
			}
		}
		return nil
	}
}

func replicates(of *redistest.Server) func(*redistest.Server) error {
	host, port, _ := net.SplitHostPort(of.Addr())
	return told("REPLICAOF " + host + " " + port)
}

const (
	full, empty      = "CONFIG SET maxmemory 1", "CONFIG SET maxmemory 0"
	alone, together  = "CONFIG SET min-replicas-to-write 1", "CONFIG SET min-replicas-to-write 0"
	pausedW, resumed = "CLIENT PAUSE 600000 WRITE", "CLIENT UNPAUSE"
	noSet, withSet   = "ACL SETUSER default -set", "ACL SETUSER default +set"
	noEval, withEval = "ACL SETUSER default -eval -evalsha", "ACL SETUSER default +eval +evalsha"
	evicts, keeps    = "CONFIG SET maxmemory-policy allkeys-lru", "CONFIG SET maxmemory-policy noeviction"
)

// ofMasters returns situations of three masters, with or without an upstream.
func ofMasters() []situation {
	const one, two = "", "1 of 3 masters vote, 2 needed"
	return []situation{
		{name: "all is well"},
		{"one master is down", on(1, (*redistest.Server).Kill), on(1, (*redistest.Server).Restart), one, false},
		{"two masters are down", on(2, (*redistest.Server).Kill), on(2, (*redistest.Server).Restart), two, false},
		{"one master hangs", on(1, (*redistest.Server).Pause), on(1, (*redistest.Server).Continue), one, false},
		{"two masters hang", on(2, (*redistest.Server).Pause), on(2, (*redistest.Server).Continue), two, false},
		{"one master is full", on(1, told(full)), on(1, told(empty)), one, false},
		{"two masters are full", on(2, told(full)), on(2, told(empty)), two, false},
		{"two masters lack replicas", on(2, told(alone)), on(2, told(together)), two, false},
		{"writes are paused on two masters", on(2, told(pausedW)), on(2, told(resumed)), two, false},
		{"two masters grant no SET", on(2, told(noSet)), on(2, told(withSet)), two, false},
		{"two masters grant no EVAL", on(2, told(noEval)), on(2, told(withEval)), two, false},
		{"one master evicts", on(1, told(evicts)), on(1, told(keeps)), one, true},
		{"two masters evict", on(2, told(evicts)), on(2, told(keeps)), two, true},
	}
}

// TestLocksAreAvailableInAllViews plays all situations.
func TestLocksAreAvailableInAllViews(t *testing.T) {
	redistest.Needs(t, "CLIENT PAUSE WRITE", "6.2")
	t.Run("a lock server", func(t *testing.T) {
		t.Parallel()
		s := newStage(t, nil, "fresh-start: true")
		s.run(t, append(ofMasters(),
			situation{name: "one master is a replica",
				play: func(s *stage) error { return replicates(s.masters[2])(s.masters[0]) },
				end:  on(1, told("REPLICAOF NO ONE")), unsafe: true},
		))
		if testing.Short() {
			return
		}
		s.run(t, []situation{
			{name: "a lock is held for an hour", play: func(s *stage) error {
				client := kit.Connect(s.t, s.proxy)
				kit.WantGrant(s.t, client, "LOCK", "long", "t", "PX", "3600000")
				return nil
			}},
			{name: "two masters lost their data", play: on(2, (*redistest.Server).Restart),
				want: "1 of 3 masters vote, 2 needed"},
			{name: "and the third, too", play: func(s *stage) error { return told("FLUSHALL")(s.masters[2]) },
				want: "0 of 3 masters vote, 2 needed"},
			{name: "it is told for how long", play: (*stage).sameQuarantine, want: "0 of 3 masters vote, 2 needed"},
		})
	})
	t.Run("without the guard", func(t *testing.T) {
		t.Parallel()
		newStage(t, nil, "guard: false").run(t, append(ofMasters()[:12], // all masters vote, even without their data
			situation{"two masters evict", on(2, told(evicts)), on(2, told(keeps)), granted, true}))
	})
	t.Run("new masters", func(t *testing.T) {
		t.Parallel()
		newStage(t, nil).run(t, []situation{
			{name: "that nobody initialized", want: "0 of 3 masters vote, 2 needed"},
			{name: "that are initialized", play: func(s *stage) error {
				code, out := s.command("init", "--longest-ttl", "0s", "--config", s.config)
				if code != 0 {
					return errors.New(out)
				}
				return nil
			}},
		})
	})
	t.Run("before and after a move", func(t *testing.T) {
		t.Parallel()
		upstream, other := kit.StartRedis(t), kit.StartRedis(t)
		kit.Must(t, kit.Tell(upstream, "ACL", "SETUSER", "app", "on", ">secret", "~*", "&*", "+@all"))
		s := newStage(t, upstream, "fresh-start: true", "lock-keys: ['lock:*']", "move-from-upstream: true",
			"share-upstream-login: true")
		const no = "the upstream, which holds the locks, refuses writes: "
		s.run(t, slices.Concat(ofMasters()[:4], []situation{
			{"the upstream is down", atUpstream((*redistest.Server).Kill), func(s *stage) error {
				kit.Must(t, s.upstream.Restart())
				return kit.Tell(s.upstream, "ACL", "SETUSER", "app", "on", ">secret", "~*", "&*", "+@all")
			}, no + "connection refused", false},
			{"the upstream hangs", atUpstream((*redistest.Server).Pause), atUpstream((*redistest.Server).Continue),
				no + "no answer in time", false},
			{"the upstream is full", atUpstream(told(full)), atUpstream(told(empty)), no + "OOM ", false},
			{"the upstream lacks replicas", atUpstream(told(alone)), atUpstream(told(together)), no + "NOREPLICAS ", false},
			{"writes are paused at the upstream", atUpstream(told(pausedW)), atUpstream(told(resumed)),
				no + "no answer in time", false},
			{"the upstream is a replica", atUpstream(replicates(other)), atUpstream(told("REPLICAOF NO ONE")),
				no + "READONLY ", false},
			{"the upstream grants no SET", atUpstream(told("ACL SETUSER app -set")),
				atUpstream(told("ACL SETUSER app +set")), no, false},
			{"the upstream grants locks alone", atUpstream(told("ACL SETUSER app resetkeys ~lock:*")),
				atUpstream(told("ACL SETUSER app ~*")), granted, false},
			{"the locks are being moved", (*stage).beginMove, (*stage).endMove,
				"the locks are being moved to the masters: ", false},
		}))
		if testing.Short() {
			return
		}
		s.run(t, []situation{
			{"the locks have moved", func(s *stage) error { return s.move() }, nil, granted, false},
			{"the upstream is full after the move", atUpstream(told(full)), atUpstream(told(empty)), granted, false},
			{"writes are paused at the upstream after the move", atUpstream(told(pausedW)), atUpstream(told(resumed)),
				granted, false},
			{"the upstream is down after the move", atUpstream((*redistest.Server).Kill), func(s *stage) error {
				kit.Must(t, s.upstream.Restart())
				return kit.Tell(s.upstream, "ACL", "SETUSER", "app", "on", ">secret", "~*", "&*", "+@all")
			}, granted, false},
			{"two masters are full after the move", on(2, told(full)), on(2, told(empty)),
				"1 of 3 masters vote, 2 needed", false},
			{"two masters hang after the move", on(2, (*redistest.Server).Pause), on(2, (*redistest.Server).Continue),
				"1 of 3 masters vote, 2 needed", false},
			{"the locks have moved back", func(s *stage) error { return s.move("--back") }, nil, granted, false},
			{"the upstream is full after they came back", atUpstream(told(full)), atUpstream(told(empty)), no + "OOM ", false},
		})
	})
}

// beginMove begins to move the locks. A second proxy, which cannot reach the upstream, takes part,
// so the move waits for it.
func (s *stage) beginMove() error {
	s.link = kit.StartLink(s.t, s.upstream)
	s.other = kit.StartConfigured(s.t, s.file("upstream: redis://app:secret@"+s.link.Addr(), "upstream-timeout: 1m"))
	if err := s.link.Cut(); err != nil {
		return err
	}
	s.moved = make(chan error, 1)
	program, err := harness.BuildProxy(s.t.Context())
	kit.Must(s.t, err)
	go func() {
		out, err := exec.Command(program, "move", "--even-if-others", "--addr", s.proxy.Addr()).CombinedOutput()
		if err != nil {
			err = errors.New(string(out))
		}
		s.moved <- err
	}()
	return nil
}

// endMove waits until the move has failed because of the second proxy, or the locks have moved. It
// then kills the second proxy.
func (s *stage) endMove() error {
	if err := <-s.moved; err != nil && !strings.Contains(err.Error(), "did not pause commands") {
		return err
	}
	return s.other.Kill()
}

// move moves the locks.
func (s *stage) move(flags ...string) error {
	var code int
	var out string
	// A killed proxy counts for a while.
	for end := time.Now().Add(kit.Patience); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if code, out = s.command(append([]string{"move", "--addr", s.proxy.Addr(), "--even-if-others"},
			flags...)...); code == 0 {
			return nil
		}
	}
	return errors.New(out)
}

// sameQuarantine waits until check and PROXY INFO report the same remaining time of quarantine.
func (s *stage) sameQuarantine() error {
	kit.Soon(s.t, func() error {
		_, out := s.command("check", "--json", "--config", s.config, "--master-timeout", "500ms")
		var said struct {
			Masters []struct {
				ReadyIn float64 `json:"ready_in_seconds"`
			}
		}
		if err := json.Unmarshal([]byte(out), &said); err != nil {
			return err
		}
		info := fmt.Sprint(s.ask("PROXY", "INFO"))
		for i, master := range said.Masters {
			_, text, _ := strings.Cut(info, fmt.Sprintf("redlock_master%d:", i))
			_, text, _ = strings.Cut(text, "ready_in_seconds=")
			text, _, _ = strings.Cut(text, ",")
			if in, err := strconv.ParseFloat(text, 64); err != nil || math.Abs(in-master.ReadyIn) > 5 || in < 3000 {
				return fmt.Errorf("master %d is ready in %s s by PROXY INFO, in %v s by check", i, text, master.ReadyIn)
			}
		}
		return nil
	})
	return nil
}
