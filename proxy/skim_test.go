package proxy

import "testing"

var simpleReplies = []struct {
	bytes string
	n     int
}{
	{"+OK\r\n", 5}, {"+OK\r\n+OK\r\n", 5}, {"-ERR no\r\n", 9}, {"+\r\n", 0}, {"+a\r\n", 4}, {"+OK\r", 0},
	{":1\r\n", 4}, {":123456789\r\n", 12}, {":1234567890\r\n", 0}, {":-1\r\n", 0}, {":\r\n\r\n", 0}, {":1x\r\n", 0},
	{"$-1\r\n", 5}, {"$-1\r\n$-1\r\n", 5}, {"$-2\r\n", 0},
	{"$0\r\n\r\n", 6}, {"$3\r\nabc\r\n", 9}, {"$3\r\nabc\r", 0}, {"$3\r\n", 0}, {"$3\r\nabc\r\n:1\r\n", 9}, {"$999999999\r\nabc", 0}, {"$9999999999\r\nabc", 0},
	{"*1\r\n:1\r\n", 0}, {"_\r\n\r\n", 0}, {">1\r\n:1\r\n", 0}, {"#t\r\n", 0},
}

func TestSimpleReplies(t *testing.T) {
	for _, test := range simpleReplies {
		if got := simpleReply([]byte(test.bytes)); got != test.n {
			t.Errorf("%q: %d, want %d", test.bytes, got, test.n)
		}
	}
}

// What is skimmed is what the scanner finds to be one reply.
func FuzzSimpleReply(f *testing.F) {
	for _, test := range simpleReplies {
		f.Add([]byte(test.bytes))
	}
	f.Fuzz(func(t *testing.T, p []byte) {
		n := simpleReply(p)
		if n == 0 {
			return
		}
		var s replyScanner
		if m, ended, err := s.scan(p); m != n || !ended || err != nil {
			t.Errorf("%q: %d; the scanner says %d, %v, %v", p, n, m, ended, err)
		}
	})
}
