//go:build integration

package status

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"testing"

	"redlock-proxy/integration/harness"
	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

func TestMain(m *testing.M) { kit.Main(m) }

// statusProxy is a proxy with its admin port.
type statusProxy struct {
	masters  []*redistest.Server
	upstream *redistest.Server
	proxy    *harness.Proxy
	url      string // URL of the status page
}

// startStatusProxy starts five masters, an upstream and a proxy. The page of the proxy shows locks
// if locks is true.
func startStatusProxy(t *testing.T, locks bool) statusProxy {
	t.Helper()
	s := statusProxy{masters: kit.StartMasters(t), upstream: kit.StartRedis(t)}
	args := append(kit.LockKeyArgs(s.upstream), "--admin", "127.0.0.1:0", fmt.Sprintf("--admin-locks=%v", locks))
	s.proxy = kit.StartProxy(t, redistest.URLs(s.masters), args...)
	s.setURL(t)
	return s
}

// setURL sets the URL from the log of the proxy.
func (s *statusProxy) setURL(t *testing.T) {
	t.Helper()
	line, err := s.proxy.WaitLog(`msg="serving health and metrics"`, kit.WaitLimit)
	kit.Must(t, err)
	s.url = "http://" + regexp.MustCompile(`admin=(\S+)`).FindStringSubmatch(line)[1] + "/"
}

// get requests a path of the admin port, under the given host name.
func (s statusProxy) get(t *testing.T, method, path, host string) (*http.Response, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, s.url+path, nil)
	kit.Must(t, err)
	if host != "" {
		request.Host = host
	}
	answer, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(request)
	kit.Must(t, err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	kit.Must(t, err)
	return answer, string(body)
}

// view returns a JSON reply of the admin port.
func (s statusProxy) view(t *testing.T, path string) (view map[string]any) {
	t.Helper()
	answer, body := s.get(t, http.MethodGet, path, "")
	if answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: got %s: %s", path, answer.Status, body)
	}
	kit.Must(t, json.Unmarshal([]byte(body), &view))
	return view
}
