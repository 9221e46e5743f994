package admin

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"unicode"
)

// State is how a check ended.
type State int

const (
	// OK: all is well.
	OK State = iota
	// Degraded: the proxy is of use, but not all is well.
	Degraded
	// Failed: no clients should be sent here.
	Failed
)

// mark begins the line of a check.
func (s State) mark() string { return [...]string{"[+]", "[!]", "[-]"}[s] }

// verdict is the last line.
func (s State) verdict() string { return [...]string{"ready", "ready, but degraded", "not ready"}[s] }

// Check is one line of /readyz.
type Check struct {
	// Name is a word, by which the check can be left out; so is Formerly, its name in earlier
	// versions.
	Name, Formerly string
	State          State
	// Text says what was found.
	Text string
}

func (c Check) is(name string) bool { return name == c.Name || name != "" && name == c.Formerly }

// String is the line.
func (c Check) String() string { return c.State.mark() + c.Name + ": " + oneLine(c.Text) }

// live answers whoever reaches the process.
func live(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, "ok\n") }

// ready answers with all checks but those that ?exclude= names, and 503 where one of them failed.
func ready(checks func() []Check) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		all, without := checks(), r.URL.Query()["exclude"]
		for _, name := range without {
			if !slices.ContainsFunc(all, func(c Check) bool { return c.is(name) }) {
				answer(w, http.StatusBadRequest, "exclude: there is no such check\n")
				return
			}
		}
		worst, text := OK, strings.Builder{}
		for _, c := range all {
			if !slices.ContainsFunc(without, c.is) {
				worst = max(worst, c.State)
				fmt.Fprintln(&text, c)
			}
		}
		fmt.Fprintln(&text, worst.verdict())
		code := http.StatusOK
		if worst == Failed {
			code = http.StatusServiceUnavailable
		}
		answer(w, code, text.String())
	}
}

func answer(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_, _ = io.WriteString(w, text)
}

// oneLine has what a server said of itself not look like a line of ours.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
}
