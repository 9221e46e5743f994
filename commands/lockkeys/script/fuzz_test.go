package script

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"redlock-proxy/commands/lockkeys/keyspace"
)

// FuzzRun checks that compiling and running any source ends, with a reply of a limited size.
func FuzzRun(f *testing.F) {
	for _, body := range scriptsOf(f, "testdata/scripts.lua") {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		s, err := compile(body)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "ERR ") || strings.ContainsAny(err.Error(), "\r\n") {
				t.Errorf("%q", err)
			}
			return
		}
		s.Literals()
		limits := Limits{Bytes: 4 << 20, Calls: 100, Reply: 1 << 16}
		reply, err := s.Run(t.Context(), Input{Keys: testKeys, Argv: testArgv, Call: fixedReply(keyspace.BulkReply("a")),
			Share: Share{Time: 50 * time.Millisecond}, Limits: limits})
		var limitErr *LimitError
		if err != nil && !errors.As(err, &limitErr) {
			t.Fatal(err)
		}
		if size := sizeOf(reply); size > limits.Reply && reply.Kind != keyspace.Error {
			t.Errorf("%d bytes", size)
		}
	})
}

// sizeOf returns the size of a reply, as Limits.Reply counts it.
func sizeOf(r keyspace.Reply) int {
	size := len(r.Str) + 16
	for _, e := range r.Elems {
		size += sizeOf(e)
	}
	return size
}

// FuzzReplyThroughScript checks the reply of a script that returns the reply of a command.
func FuzzReplyThroughScript(f *testing.F) {
	f.Add([]byte("i\x07b\x03abcn"))
	f.Add([]byte("a\x03i\x01na\x01e\x05A b\r\n"))
	f.Add([]byte("s\x04a\nb\x00N"))
	s, err := compile(`return redis.pcall("x")`)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		sent := (&replyReader{data}).reply(0)
		got, err := s.Run(t.Context(), Input{Call: fixedReply(sent), Share: Share{Time: -1}})
		if err != nil {
			t.Fatal(err)
		}
		if want := expectedReply(sent); !sameReply(got, want) {
			t.Errorf("%+v was returned as %+v, want %+v", sent, got, want)
		}
	})
}

// expectedReply returns the reply of a script that returns a command's reply r.
func expectedReply(r keyspace.Reply) keyspace.Reply {
	switch r.Kind {
	case keyspace.NilArray:
		return nilReply
	case keyspace.Int:
		f := float64(r.Int)
		if f >= math.MaxInt64 {
			return keyspace.IntReply(math.MinInt64)
		}
		return keyspace.IntReply(int64(f))
	case keyspace.Status:
		text, _, _ := strings.Cut(r.Str, "\x00")
		return keyspace.Reply{Kind: keyspace.Status, Str: replaceLineEnds(text)}
	case keyspace.Error:
		text, _, _ := strings.Cut(r.Str, "\x00")
		code, text, found := strings.Cut(text, " ")
		if !found {
			code, text = "ERR", code
		}
		return keyspace.ErrorReply(replaceLineEnds(strings.TrimRight(code+" "+strings.Trim(text, "\r\n"), "\r\n")))
	case keyspace.Array:
		list := keyspace.ArrayReply()
		for _, e := range r.Elems {
			list.Elems = append(list.Elems, expectedReply(e))
		}
		return list
	}
	return r
}

func replaceLineEnds(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(text, "\r", " "), "\n", " ")
}

// replyReader makes a reply from any bytes.
type replyReader struct{ data []byte }

func (r *replyReader) byte() byte {
	if len(r.data) == 0 {
		return 0
	}
	b := r.data[0]
	r.data = r.data[1:]
	return b
}

func (r *replyReader) text() string {
	n := min(int(r.byte()), len(r.data))
	text := string(r.data[:n])
	r.data = r.data[n:]
	return text
}

func (r *replyReader) reply(depth int) keyspace.Reply {
	switch r.byte() {
	case 'i':
		n := int64(0)
		for _, b := range []byte(r.text()) {
			n = n<<8 | int64(b)
		}
		return keyspace.IntReply(n)
	case 'b':
		return keyspace.BulkReply(r.text())
	case 's':
		return keyspace.Reply{Kind: keyspace.Status, Str: r.text()}
	case 'e':
		return keyspace.ErrorReply(r.text())
	case 'N':
		return keyspace.Reply{Kind: keyspace.NilArray}
	case 'a':
		list := keyspace.ArrayReply()
		if depth < 20 {
			for range r.byte() % 8 {
				list.Elems = append(list.Elems, r.reply(depth+1))
			}
		}
		return list
	}
	return nilReply
}
