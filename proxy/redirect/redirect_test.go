package redirect

import (
	"strings"
	"testing"

	"redlock-proxy/internal/resp"
)

// replies lists replies of an upstream, the bytes that the client gets, and the kinds of redirects.
var replies = []struct{ sent, got, kind string }{
	{"-MOVED 1 h:1\r\n", RetryError, "MOVED"},
	{"-ASK 1 h:1\r\n", RetryError, "ASK"},
	{"-REDIRECT h:1\r\n", RetryError, "REDIRECT"},
	{"-MOVED\r\n", "-MOVED\r\n", ""},
	{"-ASK me later\r\n", "-ASK me later\r\n", ""},
	{"!12\r\nMOVED 12 out\r\n", "!12\r\nMOVED 12 out\r\n", ""},
	{"-MOVED 1 h:1 script: f, on @user_script:1.\r\n", RetryError, "MOVED"},
	{"!12\r\nMOVED 1 h:12\r\n", RetryError, "MOVED"},
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

// TestFilter checks that each reply, among other replies and in any pieces, is passed on or
// replaced as a whole.
func TestFilter(t *testing.T) {
	for _, r := range replies {
		stream := r.sent + "+OK\r\n" + r.sent
		for cut := range len(stream) {
			got, kinds := filterPieces(t, stream[:cut], stream[cut:])
			if got != r.got+"+OK\r\n"+r.got || kinds != repeatKind(r.kind) {
				t.Fatalf("%q, cut at %d: %q, turned %q", stream, cut, got, kinds)
			}
		}
	}
	off := Filter{}
	for _, first := range "->!+$*" {
		if off.MustFilter(byte(first)) {
			t.Errorf("it filters %c although it is off", first)
		}
	}
}

func repeatKind(kind string) string {
	if kind == "" {
		return ""
	}
	return kind + " " + kind + " "
}

// filterPieces returns the bytes that a client gets if a stream arrives in pieces.
func filterPieces(t *testing.T, pieces ...string) (got, kinds string) {
	t.Helper()
	return filterPiecesWith(t, Filter{Enabled: true}, pieces...)
}

func filterPiecesWith(t *testing.T, f Filter, pieces ...string) (got, kinds string) {
	t.Helper()
	s := resp.ReplyScanner{}
	for _, piece := range pieces {
		for p := []byte(piece); len(p) > 0; {
			n, ended, err := s.Scan(p)
			if err != nil {
				t.Fatal(err)
			}
			out := p[:n]
			if f.MustFilter(byte(s.Kind())) {
				kind := ""
				if out, kind = f.Filter(p[:n], ended); kind != "" {
					kinds += kind + " "
				}
			}
			got, p = got+string(out), p[n:]
		}
	}
	return got, kinds
}

func TestStripRedirects(t *testing.T) {
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
		stripped, changed := StripRedirects(words)
		var got []string
		for _, word := range stripped {
			got = append(got, string(word))
		}
		if text := strings.Join(got, " "); text != want || changed != (sent != want) {
			t.Errorf("%s: %s, changed %t", sent, text, changed)
		}
	}
}
