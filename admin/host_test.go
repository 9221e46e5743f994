package admin

import (
	"net/http"
	"testing"
)

func TestIsOwnName(t *testing.T) {
	for host, want := range map[string]bool{
		"127.0.0.1:9380": true, "127.0.0.1": true, "[::1]:9380": true, "[::1]": true,
		"localhost:9380": true, "LocalHost.": true,
		"proxy.localhost:1": true, "proxy-1:9380": true, "node7.example.org:9380": true, "NODE7.example.org.": true,
		"evil.example:9380": false, "127.0.0.1.evil.example": false, "localhost.evil.example:9380": false,
		"node7.example.org.evil.example": false,
		"":                               true, ".": true, "a.": true, "evil.example.": false, "2130706433.": true,
	} {
		if got := isOwnName(host, []string{"", "node7.example.org"}); got != want {
			t.Errorf("%q: got %v", host, got)
		}
	}
}

// TestWrongHostRefusal checks that only /livez responds to the host name of another site.
func TestWrongHostRefusal(t *testing.T) {
	addr := startServer(t, true, Check{Name: "masters", State: OK})
	for path, want := range map[string]int{
		"/": 421, "/status/v1": 421, "/metrics": 421, "/readyz": 421, "/debug/pprof/": 421, "/debug/pprof/heap": 421,
		"/x": 421, "/livez": 200,
	} {
		request, err := http.NewRequest("GET", "http://"+addr+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Host = "evil.example"
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("%s: %d, want %d", path, response.StatusCode, want)
		}
	}
}
