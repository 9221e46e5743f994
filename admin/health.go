package admin

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"unicode"
)

// State is the result of a check.
type State int

const (
	// OK means that the check passed.
	OK State = iota
	// Degraded means that the proxy can serve clients, but an operator should look soon.
	Degraded
	// Failed means that load balancers should send clients to another proxy.
	Failed
)

// prefix returns the text that begins the line of a check.
func (s State) prefix() string { return [...]string{"[+]", "[!]", "[-]"}[s] }

// summary returns the last line of /readyz.
func (s State) summary() string { return [...]string{"ready", "ready, but degraded", "not ready"}[s] }

// Check describes one line of /readyz.
type Check struct {
	// Name is the word for ?exclude=. FormerName is a former name, which ?exclude= also accepts.
	Name, FormerName string
	State            State
	// Text describes the result.
	Text string
}

// hasName reports whether name is the present or the former name of the check.
func (c Check) hasName(name string) bool {
	return name == c.Name || name != "" && name == c.FormerName
}

// String returns the line of the check in /readyz.
func (c Check) String() string { return c.State.prefix() + c.Name + ": " + oneLine(c.Text) }

// serveLive responds to every request with ok, which shows that the process is alive.
func serveLive(w http.ResponseWriter, _ *http.Request) { respond(w, http.StatusOK, "ok\n") }

// readyHandler responds with the checks that ?exclude= does not name. The status is 503 if one of
// these checks failed.
func readyHandler(checks func() []Check) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		all, excluded := checks(), r.URL.Query()["exclude"]
		for _, name := range excluded {
			if !slices.ContainsFunc(all, func(c Check) bool { return c.hasName(name) }) {
				respond(w, http.StatusBadRequest, "exclude: unknown check; /readyz lists the checks\n")
				return
			}
		}
		worst, text := OK, strings.Builder{}
		for _, c := range all {
			if !slices.ContainsFunc(excluded, c.hasName) {
				worst = max(worst, c.State)
				fmt.Fprintln(&text, c)
			}
		}
		fmt.Fprintln(&text, worst.summary())
		code := http.StatusOK
		if worst == Failed {
			code = http.StatusServiceUnavailable
		}
		respond(w, code, text.String())
	}
}

func respond(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_, _ = io.WriteString(w, text)
}

// oneLine replaces control characters by spaces, so that text from a server cannot look like a line
// of the proxy.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
}
