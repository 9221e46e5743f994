//go:build integration

package deploy

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"redlock-proxy/integration/harness"
	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/certtest"
	"redlock-proxy/internal/process"
	"redlock-proxy/internal/redistest"
)

const (
	prometheusFolder = repositoryRoot + "deploy/prometheus/"
	dashboardFile    = "deploy/grafana/dashboards/redlock-proxy.json"
	jobName          = "redlock-proxy"
)

// runPromtool runs promtool on the project's files.
func runPromtool(t *testing.T, args ...string) {
	t.Helper()
	requireProgram(t, "promtool")
	if output, err := exec.Command("promtool", args...).CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, output)
	}
}

// TestPrometheusFiles checks the files with promtool, runs the tests in alerts_test.yml, and checks
// that they show each alert firing.
func TestPrometheusFiles(t *testing.T) {
	t.Parallel()
	runPromtool(t, "check", "config", prometheusFolder+"prometheus.yml")
	runPromtool(t, "check", "rules", prometheusFolder+"alerts.yml")
	runPromtool(t, "test", "rules", prometheusFolder+"alerts_test.yml")
	tests := readFile(t, "deploy/prometheus/alerts_test.yml")
	for _, r := range rules(t) {
		if r.Alert != "" && !strings.Contains(tests,
			`ALERTS{alertname="`+r.Alert+`", alertstate="firing", severity="`+r.Labels["severity"]+`"`) {
			t.Errorf("no test shows %s firing", r.Alert)
		}
	}
}

// rule is a rule of alerts.yml.
type rule struct {
	Record, Alert, Expr string
	Labels              map[string]string
}

func rules(t *testing.T) []rule {
	t.Helper()
	var file struct{ Groups []struct{ Rules []rule } }
	kit.Must(t, yaml.Unmarshal([]byte(readFile(t, "deploy/prometheus/alerts.yml")), &file))
	var list []rule
	for _, g := range file.Groups {
		list = append(list, g.Rules...)
	}
	if len(list) < 10 {
		t.Fatalf("there are %d rules", len(list))
	}
	return list
}

// queries returns the queries of the dashboard and of the rules, each query once. It removes the
// thresholds of alerts, so that all queries return data even without a problem.
func queries(t *testing.T) []string {
	t.Helper()
	var all []string
	threshold := regexp.MustCompile(`^(.+) (==|>|<) [0-9.]+$`)
	for _, r := range rules(t) {
		expr := strings.TrimSpace(r.Expr)
		if r.Alert != "" {
			parts := threshold.FindStringSubmatch(expr)
			if parts == nil {
				t.Fatalf("%s: %s compares with no number", r.Alert, expr)
			}
			expr = parts[1]
		}
		all = append(all, expr)
	}
	var board struct {
		Panels []struct{ Targets []struct{ Expr string } }
	}
	kit.Must(t, json.Unmarshal([]byte(readFile(t, dashboardFile)), &board))
	for _, p := range board.Panels {
		for _, target := range p.Targets {
			all = append(all, strings.NewReplacer("$__rate_interval", "1m", "$instance", ".*").Replace(target.Expr))
		}
	}
	if len(all) < 40 {
		t.Fatalf("there are %d queries", len(all))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// prometheus is a running Prometheus.
type prometheus struct{ url string }

// startPrometheus starts a Prometheus for the given proxies, with the project's settings and a
// short interval.
func startPrometheus(t *testing.T, proxies ...string) prometheus {
	t.Helper()
	requireProgram(t, "prometheus")
	folder := t.TempDir()
	settings := readFile(t, "deploy/prometheus/prometheus.yml")
	for old, own := range map[string]string{"proxy-1:9380, proxy-2:9380": strings.Join(proxies, ", "), "15s": "3s"} {
		if !strings.Contains(settings, old) {
			t.Fatalf("there is no %q in\n%s", old, settings)
		}
		settings = strings.ReplaceAll(settings, old, own)
	}
	kit.Must(t, os.WriteFile(filepath.Join(folder, "prometheus.yml"), []byte(settings), 0o644))
	kit.Must(t, os.WriteFile(filepath.Join(folder, "alerts.yml"), []byte(readFile(t, "deploy/prometheus/alerts.yml")), 0o644))
	addr := "127.0.0.1:" + kit.FreePort(t)
	server, err := process.Start("prometheus", []string{"--config.file=" + filepath.Join(folder, "prometheus.yml"),
		"--storage.tsdb.path=" + filepath.Join(folder, "data"), "--web.listen-address=" + addr}, environ())
	kit.Must(t, err)
	t.Cleanup(func() {
		kit.NoError(t, server.Kill())
		if t.Failed() {
			t.Logf("Prometheus says:\n%s", server.Log())
		}
	})
	p := prometheus{"http://" + addr}
	kit.AwaitWithin(t, 3*kit.WaitLimit, p.checkReady)
	return p
}

// checkReady returns an error unless Prometheus is ready for queries.
func (p prometheus) checkReady() error {
	answer, err := http.Get(p.url + "/-/ready")
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("not ready: %s", answer.Status)
	}
	return nil
}

// countSeries returns the number of series in the result of a query.
func (p prometheus) countSeries(query string) (int, error) {
	answer, err := http.Get(p.url + "/api/v1/query?query=" + url.QueryEscape(query))
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, err
	}
	var got struct {
		Status, Error string
		Data          struct{ Result []any }
	}
	if err := json.Unmarshal(text, &got); err != nil || got.Status != "success" {
		return 0, fmt.Errorf("%s: %v %s", query, err, text)
	}
	return len(got.Data.Result), nil
}

// startProxyWithAdmin starts a proxy with an admin port.
func startProxyWithAdmin(t *testing.T, masters []*redistest.Server, args ...string) (proxy *harness.Proxy, admin string) {
	t.Helper()
	admin = "127.0.0.1:" + kit.FreePort(t)
	args = append(append(kit.LockKeyArgs(kit.StartRedis(t)), "--admin", admin), args...)
	return kit.StartProxy(t, redistest.URLs(masters), args...), admin
}

// startProxyOfCluster starts a proxy with an admin port, whose upstream is a cluster of one node
// that serves no slot.
func startProxyOfCluster(t *testing.T, masters []*redistest.Server) (admin string) {
	t.Helper()
	cluster := &kit.Cluster{}
	cluster.StartNode(t, redistest.InstalledVersion)
	admin = "127.0.0.1:" + kit.FreePort(t)
	cluster.StartProxy(t, redistest.URLs(masters), "--lock-keys", "lock:*", "--admin", admin)
	return admin
}

// TestQueries checks that a real Prometheus returns data for each query of the dashboard and of the
// alerts. It scrapes three proxies, one of them busy. A majority of their masters is in quarantine.
func TestQueries(t *testing.T) {
	t.Parallel()
	masters := kit.StartMasters(t)
	pair := certtest.NewCA(t).Issue(t)
	// This proxy has a certificate, whose expiry is a metric.
	_, encrypted := startProxyWithAdmin(t, masters, "--tls-cert", pair.Cert, "--tls-key", pair.Key)
	proxy, plain := startProxyWithAdmin(t, masters)
	clustered := startProxyOfCluster(t, masters)
	server := startPrometheus(t, plain, encrypted, clustered)
	client := kit.Connect(t, proxy)
	// Masters that lose their data must wait until this lock expires.
	kit.WantGrant(t, client, "LOCK", "long", "t", "PX", "3600000")
	work := func() {
		for _, command := range [][]string{
			{"LOCK", "k", "t", "PX", "30000"}, {"LOCK", "k", "u", "PX", "30000"}, {"EXTEND", "k", "t", "PX", "30000"},
			{"UNLOCK", "k", "t"},
			{"LOCK", "w", "t", "PX", "1000", "BLOCK", "1000"}, {"UNLOCK", "w", "t"}, {"SET", "a", "b"}, {"GET", "a"},
			{"SET", "outside", "t", "NX", "PX", "1"},
			{"SET", "lock:k", "t", "NX", "PX", "1000"}, {"EVAL",
				`if redis.call("get",KEYS[1])==ARGV[1] then return redis.call("del",KEYS[1]) end`, "1", "lock:k", "t"},
		} {
			kit.Do(t, client, command...)
		}
	}
	work()
	for _, master := range masters[:3] { // a majority loses its data, so that it must wait
		kit.Must(t, master.Restart())
	}
	missing := queries(t)
	t.Logf("%d queries", len(missing))
	kit.AwaitWithin(t, 3*kit.WaitLimit, func() error {
		work()
		var emptyQueries []string
		for _, query := range missing {
			n, err := server.countSeries(query)
			kit.Must(t, err)
			if n == 0 {
				emptyQueries = append(emptyQueries, query)
			}
		}
		missing = emptyQueries // a query that has returned data once need not return data again
		if len(emptyQueries) > 0 {
			return fmt.Errorf("%d queries have no data:\n%s", len(emptyQueries), strings.Join(emptyQueries, "\n"))
		}
		return nil
	})
}

// TestNoFiringAlerts checks that a proxy without a problem raises no alert, even if idle. The
// deployment's second proxy does not exist; its alert shows that alerts work.
func TestNoFiringAlerts(t *testing.T) {
	t.Parallel()
	_, admin := startProxyWithAdmin(t, kit.StartMasters(t))
	gone := "127.0.0.1:" + kit.FreePort(t)
	server := startPrometheus(t, admin, gone)
	kit.AwaitWithin(t, 3*kit.WaitLimit, func() error {
		if n, err := server.countSeries(fmt.Sprintf("ALERTS{alertname=\"RedlockProxyDown\", instance=%q, job=%q}", gone,
			jobName)); err != nil || n != 1 {
			return fmt.Errorf("%d alerts of the proxy that is not there, %v", n, err)
		}
		return nil
	})
	if n, err := server.countSeries(fmt.Sprintf("ALERTS{instance!=%q}", gone)); err != nil || n > 0 {
		t.Errorf("%d alerts of a proxy that is well, %v", n, err)
	}
}
