package redirect

import (
	"strings"
	"testing"

	"redlock-proxy/internal/resp"
)

// fakeNodes translates addresses of the host h.
type fakeNodes struct{ downReports int }

func (n *fakeNodes) TranslateRedirect(text string) (string, bool) {
	return strings.ReplaceAll(text, "h:", "proxy:6"), strings.Contains(text, "h:")
}

func (n *fakeNodes) ReportClusterDown() { n.downReports++ }

// translateCases lists replies of a cluster's node, the bytes that the client gets, and the kind of
// a redirect to an unknown node.
var translateCases = []struct{ sent, got, kind string }{
	{"-MOVED 1 h:1\r\n", "-MOVED 1 proxy:61\r\n", ""},
	{"-ASK 1 h:1\r\n", "-ASK 1 proxy:61\r\n", ""},
	{"-MOVED 1 other:1\r\n", RetryError, "MOVED"},
	{"-MOVED\r\n", "-MOVED\r\n", ""},
	{"-REDIRECT to login\r\n", "-REDIRECT to login\r\n", ""},
	{"-MOVED " + strings.Repeat("x", maxRedirect) + "\r\n", RetryError, "MOVED"},
	{"-MOVED 1 h:" + strings.Repeat("1", maxRedirect) + "\r\n", RetryError, "MOVED"},
	{"!11\r\nMOVED 1 h:1\r\n", "!16\r\nMOVED 1 proxy:61\r\n", ""},
	{"!11\r\nMOVED 1 i:1\r\n", RetryError, "MOVED"},
	{"-CLUSTERDOWN h:1\r\n", "-CLUSTERDOWN h:1\r\n", ""},
	{">2\r\n$6\r\nMOVING\r\n$3\r\nh:1\r\n", "", "MOVING"},
}

// TestTranslate checks that redirects to known nodes are translated, in any pieces.
func TestTranslate(t *testing.T) {
	for _, r := range translateCases {
		stream := r.sent + "+OK\r\n" + r.sent
		for cut := range min(len(stream), 100) {
			got, kinds := filterPiecesWith(t, Filter{Enabled: true, Nodes: &fakeNodes{}}, stream[:cut], stream[cut:])
			if got != r.got+"+OK\r\n"+r.got || kinds != repeatKind(r.kind) {
				t.Fatalf("%q, cut at %d: %q, redirects %q", stream, cut, got, kinds)
			}
		}
		if got, kind := Replace([]byte(r.sent), &fakeNodes{}); string(got) != r.got || kind != r.kind {
			t.Errorf("%q as a whole: %q, %q", r.sent, got, kind)
		}
	}
	down := &fakeNodes{}
	Replace([]byte("-CLUSTERDOWN Hash slot not served\r\n"), down)
	if Replace([]byte("-ERR CLUSTERDOWN\r\n"), down); down.downReports != 1 {
		t.Errorf("%d errors are taken for CLUSTERDOWN", down.downReports)
	}
}

// elements lists arrays of a cluster's node, and the bytes that the client gets.
var elements = []struct{ sent, got, kinds string }{
	{"*2\r\n-MOVED 1 h:1\r\n+OK\r\n", "*2\r\n-MOVED 1 proxy:61\r\n+OK\r\n", ""},
	{"*2\r\n*1\r\n-ASK 1 i:1\r\n!11\r\nMOVED 1 h:1\r\n", "*2\r\n*1\r\n" + RetryError + "!16\r\nMOVED 1 proxy:61\r\n", "ASK"},
	{"*2\r\n$14\r\n-MOVED 1 h:1\r\n\r\n$0\r\n\r\n", "*2\r\n$14\r\n-MOVED 1 h:1\r\n\r\n$0\r\n\r\n", ""},
	{"*4\r\n%1\r\n+-MOVED 1 h:1\r\n:1\r\n-ERR MOVED 1 h:1\r\n=5\r\ntxt:x\r\n_\r\n",
		"*4\r\n%1\r\n+-MOVED 1 h:1\r\n:1\r\n-ERR MOVED 1 h:1\r\n=5\r\ntxt:x\r\n_\r\n", ""},
	{"*3\r\n$-1\r\n*-1\r\n-" + strings.Repeat("E", 100) + "\r\n", "*3\r\n$-1\r\n*-1\r\n-" + strings.Repeat("E", 100) + "\r\n", ""},
	{"*2\r\n-MOVED 12 out\r\n!3\r\nASK\r\n", "*2\r\n-MOVED 12 out\r\n!3\r\nASK\r\n", ""},
	{"*0\r\n", "*0\r\n", ""},
}

// TestFilterElements checks that redirects within an array are translated, in any pieces.
func TestFilterElements(t *testing.T) {
	for _, r := range elements {
		for cut := range r.sent {
			f, got, kinds := Filter{Enabled: true, Nodes: &fakeNodes{}}, "", ""
			for _, piece := range []string{r.sent[:cut], r.sent[cut:]} {
				part, found := f.FilterElements([]byte(piece))
				got, kinds = got+string(part), kinds+strings.Join(found, " ")
			}
			if got != r.got || kinds != r.kinds {
				t.Fatalf("%q, cut at %d: %q, redirects %q", r.sent, cut, got, kinds)
			}
		}
	}
}

// FuzzFilterElements checks that FilterElements returns the same bytes however an array is split,
// and that these bytes are a whole reply.
func FuzzFilterElements(f *testing.F) {
	for _, r := range elements {
		f.Add([]byte(r.sent), uint8(3))
	}
	f.Fuzz(func(t *testing.T, sent []byte, size uint8) {
		n := resp.WholeReplyLen(sent)
		if n == 0 || n != len(sent) || sent[0] != '*' {
			return
		}
		whole := Filter{Enabled: true, Nodes: &fakeNodes{}}
		want, _ := whole.FilterElements(sent)
		if resp.WholeReplyLen(want) != len(want) {
			t.Fatalf("%q becomes %q, which is no reply", sent, want)
		}
		pieces, got := Filter{Enabled: true, Nodes: &fakeNodes{}}, []byte(nil)
		for rest := sent; len(rest) > 0; {
			cut := min(int(size)+1, len(rest))
			part, _ := pieces.FilterElements(rest[:cut])
			got, rest = append(got, part...), rest[cut:]
		}
		if string(got) != string(want) {
			t.Fatalf("%q in pieces of %d becomes %q, want %q", sent, size, got, want)
		}
	})
}
