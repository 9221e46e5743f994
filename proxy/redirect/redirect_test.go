package redirect

import (
	"strings"
	"testing"

	"redlock-proxy/internal/resp"
)

// replies lists what an upstream sends, what the client gets, and the redirects that were found.
var replies = []struct{ sent, got, turned string }{
	{"-MOVED 1 h:1\r\n", Retry, "MOVED"},
	{"-ASK 1 h:1\r\n", Retry, "ASK"},
	{"-REDIRECT h:1\r\n", Retry, "REDIRECT"},
	{"-MOVED\r\n", Retry, "MOVED"},
	{"!12\r\nMOVED 1 h:12\r\n", Retry, "MOVED"},
	{">4\r\n$6\r\nMOVING\r\n:1\r\n:2\r\n$3\r\nh:1\r\n", "", "MOVING"},
	{">2\r\n+MOVING\r\n$3\r\nh:1\r\n", "", "unknown message"},
	{">2\r\n$70\r\n" + strings.Repeat("x", 70) + "\r\n:1\r\n", "", "unknown message"},
	{"-MOVEDX 1\r\n", "-MOVEDX 1\r\n", ""},
	{"-ERR MOVED 1 h:1\r\n", "-ERR MOVED 1 h:1\r\n", ""},
	{"-" + strings.Repeat("E", 100) + " x\r\n", "-" + strings.Repeat("E", 100) + " x\r\n", ""},
	{"-\r\n", "-\r\n", ""},
	{">3\r\n$7\r\nmessage\r\n$1\r\na\r\n$6\r\nMOVING\r\n", ">3\r\n$7\r\nmessage\r\n$1\r\na\r\n$6\r\nMOVING\r\n", ""},
	{">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n", ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n", ""},
	{"$14\r\n-MOVED 1 h:1\r\n\r\n", "$14\r\n-MOVED 1 h:1\r\n\r\n", ""},
	{"*1\r\n$6\r\nMOVING\r\n", "*1\r\n$6\r\nMOVING\r\n", ""},
}

// TestFilter: each reply, among other replies and in any pieces, is passed on or replaced as a
// whole.
func TestFilter(t *testing.T) {
	for _, r := range replies {
		stream := r.sent + "+OK\r\n" + r.sent
		for cut := range len(stream) {
			got, turned := through(t, stream[:cut], stream[cut:])
			if got != r.got+"+OK\r\n"+r.got || turned != twice(r.turned) {
				t.Fatalf("%q, cut at %d: %q, turned %q", stream, cut, got, turned)
			}
		}
	}
	off := Filter{}
	for _, first := range "->!+$*" {
		if off.Looks(byte(first)) {
			t.Errorf("it looks at %c although it is off", first)
		}
	}
}

func twice(what string) string {
	if what == "" {
		return ""
	}
	return what + " " + what + " "
}

// through returns what a client gets of a stream that arrives in pieces.
func through(t *testing.T, pieces ...string) (got, turned string) {
	t.Helper()
	f, s := Filter{On: true}, resp.ReplyScanner{}
	for _, piece := range pieces {
		for p := []byte(piece); len(p) > 0; {
			n, ended, err := s.Scan(p)
			if err != nil {
				t.Fatal(err)
			}
			out := p[:n]
			if f.Looks(byte(s.Kind())) {
				what := ""
				if out, what = f.Take(p[:n], ended); what != "" {
					turned += what + " "
				}
			}
			got, p = got+string(out), p[n:]
		}
	}
	return got, turned
}

func TestHarmless(t *testing.T) {
	for sent, want := range map[string]string{
		"CLIENT MAINT_NOTIFICATIONS ON":         "CLIENT MAINT_NOTIFICATIONS-IS-NOT-FOR-LOCK-KEYS ON",
		"client maint_notifications":            "client MAINT_NOTIFICATIONS-IS-NOT-FOR-LOCK-KEYS",
		"CLIENT CAPA redirect":                  "CLIENT CAPA none",
		"cLIENT cAPA other REDIRECT x reDirect": "cLIENT cAPA other none x none",
		"CLIENT CAPA other":                     "CLIENT CAPA other",
		"CLIENT CAPA redirect\x00x":             "CLIENT CAPA none",
		"CLIENT CAPA\x00x redirect":             "CLIENT CAPA\x00x none",
		"CLIENT CAPA redirec\x00t":              "CLIENT CAPA redirec\x00t",
		"CLIENT SETNAME redirect":               "CLIENT SETNAME redirect",
		"CLIENT":                                "CLIENT",
		"SET capa redirect":                     "SET capa redirect",
	} {
		var words [][]byte
		for word := range strings.FieldsSeq(sent) {
			words = append(words, []byte(word))
		}
		other, changed := StripRedirects(words)
		var got []string
		for _, word := range other {
			got = append(got, string(word))
		}
		if text := strings.Join(got, " "); text != want || changed != (sent != want) {
			t.Errorf("%s: %s, changed %t", sent, text, changed)
		}
	}
}
