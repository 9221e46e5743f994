package resp

import (
	"math"
	"slices"
	"testing"
)

var simpleReplies = []struct {
	bytes string
	n     int
}{
	{"+OK\r\n", 5}, {"+OK\r\n+OK\r\n", 5}, {"-ERR no\r\n", 9}, {"+\r\n", 0}, {"+a\r\n", 4}, {"+OK\r", 0},
	{":1\r\n", 4}, {":123456789\r\n", 12}, {":1234567890\r\n", 0}, {":-1\r\n", 0}, {":\r\n\r\n", 0}, {":1x\r\n", 0},
	{"$-1\r\n", 5}, {"$-1\r\n$-1\r\n", 5}, {"$-2\r\n", 0},
	{"$0\r\n\r\n", 6}, {"$3\r\nabc\r\n", 9}, {"$3\r\nabc\r", 0}, {"$3\r\n", 0}, {"$3\r\nabc\r\n:1\r\n", 9},
	{"$999999999\r\nabc", 0}, {"$9999999999\r\nabc", 0},
	{"*1\r\n:1\r\n", 0}, {"_\r\n\r\n", 0}, {">1\r\n:1\r\n", 0}, {"#t\r\n", 0},
}

func TestSimpleReplies(t *testing.T) {
	for _, test := range simpleReplies {
		if got := SimpleReplyLen([]byte(test.bytes)); got != test.n {
			t.Errorf("%q: %d, want %d", test.bytes, got, test.n)
		}
	}
}

// FuzzSimpleReply checks that SimpleReplyLen finds the same reply as the scanner.
func FuzzSimpleReply(f *testing.F) {
	for _, test := range simpleReplies {
		f.Add([]byte(test.bytes))
	}
	f.Fuzz(func(t *testing.T, p []byte) {
		n := SimpleReplyLen(p)
		if n == 0 {
			return
		}
		var s ReplyScanner
		if m, ended, err := s.Scan(p); m != n || !ended || err != nil {
			t.Errorf("%q: %d; the scanner says %d, %v, %v", p, n, m, ended, err)
		}
	})
}

func TestReplyContents(t *testing.T) {
	for _, c := range []struct {
		reply, line, firstError string
		texts                   []string
	}{
		{"+OK\r\n", "OK", "OK", []string{"OK"}},
		{"-NOPERM no\r\n", "NOPERM no", "NOPERM no", nil},
		{"*-1\r\n", "-1", "-1", nil},
		{"*0\r\n", "0", "", nil},
		{"*2\r\n:1\r\n-ERR no\r\n", "2", "ERR no", nil},
		{"*2\r\n$9\r\n-ERR no\r\n\r\n$-1\r\n", "2", "", []string{"-ERR no\r\n"}},
		{"%1\r\n$1\r\na\r\n=5\r\ntxt:b\r\n", "1", "1", []string{"a", "txt:b"}},
		{"*1\r\n$5\r\nab", "1", "the answer is not a valid reply", nil},
	} {
		line, firstError, texts := FirstLine([]byte(c.reply)), FirstError([]byte(c.reply)), Texts([]byte(c.reply))
		if line != c.line || firstError != c.firstError || !slices.Equal(texts, c.texts) {
			t.Errorf("%q: %q, %q, %q", c.reply, line, firstError, texts)
		}
	}
}

// TestWholeReply checks that WholeReplyLen finds the end of a reply of each type, and returns 0 for
// each incomplete part of it.
func TestWholeReply(t *testing.T) {
	for _, reply := range []string{
		"+OK\r\n", ":1\r\n", "_\r\n", "$-1\r\n", "*-1\r\n", "$3\r\nabc\r\n", "$0\r\n\r\n", "*0\r\n",
		"*2\r\n:1\r\n*1\r\n$1\r\nx\r\n",
		"~2\r\n+a\r\n+b\r\n", "%1\r\n+a\r\n*1\r\n:1\r\n", "=7\r\ntxt:abc\r\n", "#t\r\n", ",1.5\r\n",
		"*2\r\n$3\r\nget\r\n*1\r\n*0\r\n",
	} {
		if got := WholeReplyLen([]byte(reply + "+after\r\n")); got != len(reply) {
			t.Errorf("%q: %d, want %d", reply, got, len(reply))
		}
		for at := range len(reply) - 1 {
			if got := WholeReplyLen([]byte(reply[:at])); got != 0 {
				t.Errorf("%q: %d", reply[:at], got)
			}
		}
	}
	if got := WholeReplyLen([]byte("\r\n")); got != 0 {
		t.Errorf("an empty line: %d", got)
	}
}

func TestHeader(t *testing.T) {
	for reply, want := range map[string]struct {
		n    int
		rest string
	}{
		"*2\r\n:1\r\n:2\r\n": {2, ":1\r\n:2\r\n"}, ":42\r\n": {42, ""}, "$3\r\nabc\r\n": {3, "abc\r\n"}, "%0\r\n": {0, ""},
		"": {-1, ""}, "*2": {-1, ""}, "\r\n": {-1, ""}, "*-1\r\n": {-1, ""}, "+OK\r\n": {-1, ""}, "_\r\n": {-1, ""},
		":-5\r\n": {-1, ""},
	} {
		n, rest, ok := Header([]byte(reply))
		if ok != (want.n >= 0) || ok && (n != want.n || string(rest) != want.rest) {
			t.Errorf("%q: %d, %q, %v", reply, n, rest, ok)
		}
	}
}

// TestEndsInCRLF checks that EndsInCRLF finds a wrong line end at every position.
func TestEndsInCRLF(t *testing.T) {
	const frame = "*3\r\n$3\r\nSET\r\n$2\r\n\r\n\r\n$5\r\nvalue\r\n"
	if !EndsInCRLF([]byte(frame)) {
		t.Errorf("%q", frame)
	}
	for _, at := range []int{3, 7, 11, 12, 16, 19, 20, 24, 30, 31} {
		other := []byte(frame)
		if other[at] = 'x'; EndsInCRLF(other) {
			t.Errorf("%q", other)
		}
	}
}

// TestWords checks that Words returns the complete words of a part of a frame, and that Excerpt
// also returns an incomplete last word.
func TestWords(t *testing.T) {
	const frame = "*3\r\n$3\r\nSET\r\n$2\r\n\r\n\r\n$5\r\nvalue\r\n"
	for _, c := range []struct {
		at, limit      int
		words, excerpt []string
	}{
		{len(frame), math.MaxInt, []string{"SET", "\r\n", "value"}, []string{"SET", "\r\n", "value"}},
		{len(frame), 2, []string{"SET", "\r\n"}, []string{"SET", "\r\n", "value"}},
		{len(frame) - 4, 3, []string{"SET", "\r\n"}, []string{"SET", "\r\n", "val"}},
		{10, 3, nil, []string{"SE"}},
		{2, 3, nil, nil},
	} {
		part := []byte(frame[:c.at])
		words, total, size := Words(nil, part, c.limit)
		excerpt, count := Excerpt(part)
		if !equal(words, c.words) || !equal(excerpt, c.excerpt) || total != count || total != 3 && c.at > 3 || size > c.at {
			t.Errorf("%q: %q of %d, %d bytes behind; %q of %d", part, words, total, size, excerpt, count)
		}
	}
}

func equal(got [][]byte, want []string) bool {
	return slices.EqualFunc(got, want, func(g []byte, w string) bool { return string(g) == w })
}
