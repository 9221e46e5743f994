//go:build integration

package compose

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"redlock-proxy/internal/redistest"
)

// testMetrics starts the profile metrics, without Grafana, for which the tests have no stand-in. It
// checks that Prometheus scrapes both proxies, and that no alert fires.
func testMetrics(t *testing.T, e engine, image string) {
	t.Parallel()
	addr, err := redistest.FreeAddr()
	if err != nil {
		t.Fatal(err)
	}
	p := e.newProject(t, image, "metrics").useFreePorts(t)
	p.env = append(p.env, "COMPOSE_PROFILES=metrics", "PROMETHEUS_PORT="+portOf(addr))
	p.runCompose(t, "up", "--detach", "proxy-1", "proxy-2", "prometheus")
	p.wantLock(t, 1, "key")
	for query, want := range map[string]string{
		`sum(up{job="redlock-proxy"})`:                    `"2"]`,
		`min(redlock_quorum)`:                             `"1"]`,
		`count(ALERTS{alertstate="firing"}) or vector(0)`: `"0"]`,
	} {
		waitFor(t, func() error { return checkPrometheusReply(addr, "/api/v1/query?query="+url.QueryEscape(query), want) })
	}
	waitFor(t, func() error { return checkPrometheusReply(addr, "/api/v1/rules", "RedlockQuorumLost") })
}

// checkPrometheusReply returns an error unless Prometheus' reply contains a part.
func checkPrometheusReply(addr, path, part string) error {
	answer, err := http.Get("http://" + addr + path)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err == nil && !strings.Contains(string(body), part) {
		err = fmt.Errorf("%s: got %s, want %s", path, body, part)
	}
	return err
}
