//go:build integration

package operate

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/certtest"
	"redlock-proxy/internal/redistest"
)

// checkMasters runs check with the given masters.
func checkMasters(t *testing.T, urls []string, args ...string) outcome {
	t.Helper()
	command := []string{"check"}
	for _, url := range urls {
		command = append(command, "--master", url)
	}
	return runProxy(t, append(command, args...)...)
}

// row returns the row of the table that begins with a master's name.
func (o outcome) row(t *testing.T, name string) string {
	t.Helper()
	for line := range strings.Lines(o.stdout) {
		if strings.HasPrefix(line, name+" ") {
			return line
		}
	}
	t.Fatalf("no row for %s in\n%s", name, o.stdout)
	return ""
}

// wantVerdict checks the exit code, and that check prints nothing on stderr. The output must end
// with the verdict and the next step for the operator.
func (o outcome) wantVerdict(t *testing.T, code int, verdict string) {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(o.stdout, "\n"), "\n")
	last := lines[max(0, len(lines)-2):]
	if o.code != code || o.stderr != "" || !strings.HasPrefix(last[0], "verdict: "+verdict) ||
		!strings.HasPrefix(last[len(last)-1], "next: ") {
		t.Errorf("got %d, %q and\n%swant %d and at the end\nverdict: %s\nnext: …", o.code, o.stderr, o.stdout, code, verdict)
	}
}

// wantRow fails the test unless the row of a master contains the words.
func (o outcome) wantRow(t *testing.T, name string, words ...string) {
	t.Helper()
	row := o.row(t, name)
	for _, word := range words {
		if !strings.Contains(row, word) {
			t.Errorf("got %swant %q in it", row, word)
		}
	}
}

// TestCheckNewMasters checks masters that no proxy has used. Locks are not available before the
// operator confirms that the masters are new.
func TestCheckNewMasters(t *testing.T) {
	t.Parallel()
	masters := kit.StartMasters(t)
	got := checkMasters(t, redistest.URLs(masters))
	got.wantVerdict(t, 3, "no locks: 0 of 5 masters vote, 3 needed; "+masters[0].Addr()+": unmarked; ")
	if !strings.HasSuffix(got.stdout, "\nnext: if all masters are new: redlock-proxy init --longest-ttl 0s\n") {
		t.Errorf("the cure is not named:\n%s", got.stdout)
	}
	for _, master := range masters {
		got.wantRow(t, master.Addr(), "master", "noeviction", "off", "unmarked", "forgets locks when it restarts")
	}
	checkMasters(t, redistest.URLs(masters), "--fresh-start").wantVerdict(t, 0, "ok: 5 of 5 masters vote")
	for _, args := range [][]string{{}, {"--upstream", kit.StartRedis(t).URL()}} {
		args = append(args, "--fresh-start", "--lock-keys", "lock:*")
		checkMasters(t, redistest.URLs(masters), args...).wantVerdict(t, 0, "ok: 5 of 5 masters vote")
	}
	kit.Must(t, kit.SendToMaster(masters[4], "SET", "k", "v"))
	checkMasters(t, redistest.URLs(masters), "--fresh-start").wantVerdict(t, 3, "no locks: 0 of 5 masters vote, 3 needed; ")
}

// TestCheckHealthyMasters runs check for masters in use, and an upstream.
func TestCheckHealthyMasters(t *testing.T) {
	t.Parallel()
	f := kit.StartGuardedFleet(t, true, 1)
	upstream := kit.StartRedis(t)
	got := checkMasters(t, redistest.URLs(f.Masters), "--upstream", upstream.URL())
	got.wantVerdict(t, 0, "ok: 5 of 5 masters vote")
	if lines := strings.Count(got.stdout, "\n"); lines != 1+5+1+2 {
		t.Errorf("%d lines:\n%s", lines, got.stdout)
	}
	got.wantRow(t, upstream.Addr(), "(upstream)", "noeviction", "ok")
	if !strings.HasSuffix(got.stdout, "\nnext: nothing to do; proxies seen within the last 3s: 1\n") {
		t.Errorf("the running proxy is not counted:\n%s", got.stdout)
	}
	kit.Must(t, f.Proxies[0].Kill())
	kit.Eventually(t, func() error { // once the masters' lists of proxies have expired
		got := checkMasters(t, redistest.URLs(f.Masters))
		if !strings.HasSuffix(got.stdout, "\nnext: start the proxies with these settings: redlock-proxy serve\n") {
			return fmt.Errorf("no proxy is running:\n%s", got.stdout)
		}
		return nil
	})
}

// TestCheckMarker checks that the table shows the proxies' records on the masters.
func TestCheckMarker(t *testing.T) {
	t.Parallel()
	f := kit.StartGuardedFleet(t, true, 1)
	kit.WantGrant(t, kit.Connect(t, f.Proxies[0]), "LOCK", "k", "t", "PX", "60000")
	kit.Must(t, f.Masters[2].Restart())
	kit.Eventually(t, func() error {
		if record, err := kit.QueryDatabase(f.Masters[2], "0", "GET", "redlock-proxy:quarantine"); err != nil || record == nil {
			return fmt.Errorf("no record: %v", err)
		}
		return nil
	})
	kit.Must(t, f.Proxies[0].Kill()) // otherwise the master would soon catch up
	got := checkMasters(t, redistest.URLs(f.Masters))
	got.wantRow(t, f.Masters[1].Addr(), "votes")
	got.wantRow(t, f.Masters[2].Addr(), "quarantine: restarted without proof of its data, for ")
	got.wantVerdict(t, 4, "degraded: 4 of 5 masters vote; "+f.Masters[2].Addr()+": quarantine: restarted without proof of its data, for ")
}

func TestCheckDurableMaster(t *testing.T) {
	t.Parallel()
	master := kit.StartRedis(t, "--appendonly", "yes", "--appendfsync", "always")
	got := checkMasters(t, []string{master.URL()}, "--fresh-start")
	got.wantRow(t, master.Addr(), "always", "ok\n")
	if got.code != 0 || !strings.Contains(got.stdout, "warning: masters: only 1 master: no failure is tolerated") {
		t.Errorf("got exit code %d and\n%swant 0 and a warning that one master is not enough", got.code, got.stdout)
	}
}

func TestCheckReplica(t *testing.T) {
	t.Parallel()
	master := kit.StartRedis(t)
	host, port, err := net.SplitHostPort(master.Addr())
	kit.Must(t, err)
	replica := kit.StartSameVersion(t, master, "--replicaof", host, port)
	const cause = "it is a replica: locks written there are lost at its next sync"
	got := checkMasters(t, []string{master.URL(), replica.URL()})
	got.wantRow(t, replica.Addr(), cause)
	got.wantVerdict(t, 2, "unsafe: it would not be safe to serve; "+replica.Addr()+": "+cause)
}

func TestCheckEviction(t *testing.T) {
	t.Parallel()
	master := kit.StartRedis(t, "--maxmemory-policy", "allkeys-lru")
	const cause = "maxmemory-policy allkeys-lru may evict a lock: set noeviction"
	got := checkMasters(t, []string{master.URL()})
	got.wantRow(t, master.Addr(), "allkeys-lru", cause)
	got.wantVerdict(t, 2, "unsafe: it would not be safe to serve; "+master.Addr()+": "+cause)
}

// TestCheckSameServer checks that check rejects two masters that are one server under two
// addresses: one server would vote twice.
func TestCheckSameServer(t *testing.T) {
	t.Parallel()
	master := kit.StartRedis(t)
	_, port, err := net.SplitHostPort(master.Addr())
	kit.Must(t, err)
	got := checkMasters(t, []string{master.URL(), "redis://localhost:" + port})
	got.wantVerdict(t, 2,
		"unsafe: it would not be safe to serve; localhost:"+port+": it is the same server as "+master.Addr())
}

// TestCheckDownMasters checks that check reports unavailable masters as degraded while a majority
// votes. Without a majority, check reports that locks are not available.
func TestCheckDownMasters(t *testing.T) {
	t.Parallel()
	f := kit.StartGuardedFleet(t, true, 1)
	for _, master := range f.Masters[:2] {
		kit.Must(t, master.Kill())
	}
	got := checkMasters(t, redistest.URLs(f.Masters))
	got.wantRow(t, f.Masters[0].Addr(), "connection refused")
	got.wantVerdict(t, 4, "degraded: 3 of 5 masters vote; "+f.Masters[0].Addr()+": connection refused; "+f.Masters[1].Addr()+": connection refused")
	kit.Must(t, f.Masters[2].Pause())
	got = checkMasters(t, redistest.URLs(f.Masters))
	got.wantRow(t, f.Masters[2].Addr(), "no answer in time")
	got.wantVerdict(t, 3, "no locks: 2 of 5 masters vote, 3 needed; ")
}

// TestCheckUnqueryableMaster checks that each cause for which check cannot query a master gets its
// own text.
func TestCheckUnqueryableMaster(t *testing.T) {
	t.Parallel()
	web := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(web.Close)
	withPassword := kit.StartRedis(t, "--requirepass", "secret")
	_, port, err := net.SplitHostPort(withPassword.Addr())
	kit.Must(t, err)
	_, tlsURL := startTLSMaster(t, certtest.NewCA(t))
	for _, c := range []struct{ name, url, want string }{
		{"a wrong password", "redis://:wrong@" + withPassword.Addr(), "wrong password: WRONGPASS "},
		{"no password", withPassword.URL(), "requires a password, and none is given: NOAUTH "},
		{"a name that is none", "redis://no-such-host.invalid:" + port, "no such host"},
		{"a web server", "redis://" + web.Listener.Addr().String(), "it is not a Redis: "},
		{"TLS to a Redis without", "rediss://" + withPassword.Addr(), "it does not use TLS: use redis:// instead of rediss://"},
		{"no TLS to a Redis with it", strings.Replace(tlsURL, "rediss://", "redis://", 1),
			"it requires TLS: use rediss:// instead of redis://"},
		{"TLS to a web server without", "rediss://" + web.Listener.Addr().String(),
			"it does not use TLS: use redis:// instead of rediss://"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := checkMasters(t, []string{c.url})
			if c.want == "no such host" && strings.Contains(got.stdout, "cannot resolve its name: ") {
				t.Skip("SKIPPED, NOT TESTED: this machine has no name service that says that there is no such host")
			}
			address, err := url.Parse(c.url)
			kit.Must(t, err)
			got.wantVerdict(t, 3, "no locks: 0 of 1 masters vote, 1 needed; "+address.Host+": "+c.want)
			if strings.Contains(got.stdout, ":wrong") {
				t.Errorf("a password is shown:\n%s", got.stdout)
			}
		})
	}
}

// TestCheckPermissions checks that check reports the permissions for waiting clients and messages
// that the proxies' user lacks, if the proxies need them. The user has all permissions for locks.
func TestCheckPermissions(t *testing.T) {
	redistest.RequireFeature(t, "rights to channels", "6.2")
	t.Parallel()
	f := kit.StartGuardedFleet(t, true, 1)
	upstream := kit.StartRedis(t)
	var urls []string
	for _, master := range f.Masters {
		urls = append(urls, strings.Replace(master.URL(), "redis://", "redis://proxies:secret@", 1))
	}
	const messages = "&redlock-proxy:messages:*"
	for _, test := range []struct {
		rules, args string
		want        []string
	}{
		{"~* &* +@all", "", nil},
		{"~* resetchannels " + messages + " +@all", "--key-prefix p:", nil},
		{"~* resetchannels +@all", "", []string{"lacks " + messages + ": SUBSCRIBE and PUBLISH may fail"}},
		{"~* &* +@all -publish -subscribe", "", []string{"lacks +publish +subscribe: SUBSCRIBE and PUBLISH may fail"}},
		{"~* resetchannels +@all -publish", "", []string{"lacks +publish " +
			messages + ": SUBSCRIBE and PUBLISH may fail"}},
		{"~* resetchannels +@all", "--upstream " + upstream.URL(), nil},
		{"~* resetchannels +@all -client|tracking -getrange", "--upstream " + upstream.URL(),
			[]string{"lacks +getrange +client|tracking: waiting clients poll"}},
	} {
		for _, master := range f.Masters {
			kit.Must(t, kit.SendToMaster(master, append(strings.Fields("ACL SETUSER proxies reset on >secret"),
				strings.Fields(test.rules)...)...))
		}
		got := checkMasters(t, urls, strings.Fields(test.args)...)
		for _, master := range f.Masters {
			row := got.row(t, master.Addr())
			if got.wantRow(t, master.Addr(), test.want...); strings.Count(row, "lacks") != len(test.want) {
				t.Errorf("%s: %s", test.rules, row)
			}
		}
	}
}

// TestCheckUpstream checks that check reports an unreachable upstream as degraded. It reports an
// upstream that is also a master as unsafe, even under another name.
func TestCheckUpstream(t *testing.T) {
	t.Parallel()
	f := kit.StartGuardedFleet(t, true, 1)
	upstream := kit.StartRedis(t, "--requirepass", "secret")
	// Without a shared login, the clients log in.
	checkMasters(t, redistest.URLs(f.Masters), "--upstream", upstream.URL()).wantVerdict(t, 0, "ok: ")
	checkMasters(t, redistest.URLs(f.Masters), "--upstream", "redis://:wrong@"+upstream.Addr(), "--share-upstream-login").
		wantVerdict(t, 4, "degraded: 5 of 5 masters vote; upstream "+upstream.Addr()+": wrong password: ")
	kit.Must(t, upstream.Kill())
	checkMasters(t, redistest.URLs(f.Masters), "--upstream", upstream.URL()).
		wantVerdict(t, 4, "degraded: 5 of 5 masters vote; upstream "+upstream.Addr()+": connection refused")
	_, port, err := net.SplitHostPort(f.Masters[1].Addr())
	kit.Must(t, err)
	checkMasters(t, redistest.URLs(f.Masters), "--upstream", "redis://localhost:"+port+"/3").
		wantVerdict(t, 2, "unsafe: it would not be safe to serve; localhost:"+port+": upstream is the same server as master "+f.Masters[1].Addr())
}

// TestCheckJSON checks that the JSON output has the same content as the text.
func TestCheckJSON(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	f := kit.StartGuardedFleet(t, true, 1)
	kit.Must(t, f.Masters[4].Kill())
	got := checkMasters(t, redistest.URLs(f.Masters), "--json", "--upstream", "redis://127.0.0.1:1")
	var document struct {
		Verdict string   `json:"verdict"`
		Code    int      `json:"exit_code"`
		Reasons []string `json:"reasons"`
		Masters []struct {
			Name, Error string
			Votes       bool
		} `json:"masters"`
		Upstream struct{ Error string } `json:"upstream"`
	}
	kit.Must(t, json.Unmarshal([]byte(got.stdout), &document))
	if got.code != 4 || document.Code != 4 || document.Verdict != "degraded" || len(document.Reasons) != 3 ||
		len(document.Masters) != 5 ||
		!document.Masters[0].Votes || document.Masters[4].Votes || document.Masters[4].Error != "connection refused" ||
		document.Upstream.Error != "connection refused" {
		t.Errorf("got %d and\n%s", got.code, got.stdout)
	}
}

// TestCheckConfig checks that --check-config reads the configuration, and opens no connection.
func TestCheckConfig(t *testing.T) {
	t.Parallel()
	got := runProxy(t, "serve", "--check-config", "--master", "redis://127.0.0.1:1")
	if got.code != 0 || got.stderr != "" || !strings.HasPrefix(got.stdout,
		"warning: masters: only 1 master: no failure is tolerated") || !strings.HasSuffix(got.stdout,
		"\nthe configuration is valid\n") {
		t.Errorf("got %+v", got)
	}
	wantFailure(t, runProxy(t, "serve", "--check-config", "--master", "redis://127.0.0.1:1", "--max-ttl", "soon"),
		`redlock-proxy: --max-ttl: "soon" is not a duration (a number and a unit, such as "100ms" or "24h")`)
}
