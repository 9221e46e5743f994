package redistest

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"math/big"
	"reflect"
	"slices"
	"strings"
	"testing"
)

var replies = []struct {
	encoded string
	want    any
}{
	{"+OK\r\n", "OK"},
	{"+\r\n", ""},
	{"-ERR no\r\n", RespError("ERR no")},
	{":-12\r\n", int64(-12)},
	{"$5\r\na\r\nbc\r\n", "a\r\nbc"},
	{"$0\r\n\r\n", ""},
	{"$70000\r\n" + strings.Repeat("x", 70000) + "\r\n", strings.Repeat("x", 70000)},
	{"$-1\r\n", nil},
	{"*-1\r\n", nil},
	{"*0\r\n", []any{}},
	{"*2\r\n:1\r\n*1\r\n$-1\r\n", []any{int64(1), []any{nil}}},
	{"_\r\n", nil},
	{"#t\r\n", true},
	{"#f\r\n", false},
	{",1.5\r\n", 1.5},
	{"(12345678901234567890\r\n", func() any { n, _ := new(big.Int).SetString("12345678901234567890", 10); return n }()},
	{"=7\r\ntxt:abc\r\n", "abc"},
	{"!7\r\nERR bad\r\n", RespError("ERR bad")},
	{"%2\r\n+a\r\n:1\r\n:2\r\n_\r\n", map[string]any{"a": int64(1), "2": nil}},
	{"~2\r\n+a\r\n+b\r\n", []any{"a", "b"}},
	{">2\r\n+lock-lost\r\n+k\r\n", Push{"lock-lost", "k"}},
	{"|1\r\n+ttl\r\n:1\r\n+value\r\n", "value"},
}

func TestReadReply(t *testing.T) {
	for _, c := range replies {
		r := bufio.NewReader(strings.NewReader(c.encoded + "+next\r\n"))
		if got, err := ReadReply(r); err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%.40q: %#v, %v; want %#v", c.encoded, got, err, c.want)
		}
		if next, err := ReadReply(r); err != nil || next != "next" {
			t.Errorf("%q: then %#v, %v", c.encoded, next, err)
		}
	}
}

var invalidReplies = []string{
	"\r\n", "x\r\n", "OK\r\n", "+OK\n", ":\r\n", ":1x\r\n", "$x\r\n", "$-2\r\n", "$99999999999\r\n", "$2\r\nabcd",
	"=2\r\nab\r\n",
	"#x\r\n", ",x\r\n", "(x\r\n", "*9999999999\r\n", "*1\r\nx\r\n", strings.Repeat("*1\r\n", maxDepth+2),
	strings.Repeat("x", 2*maxLine),
}

func TestReadReplyRefuses(t *testing.T) {
	for _, wire := range invalidReplies {
		if got, err := ReadReply(bufio.NewReader(strings.NewReader(wire))); !errors.Is(err, ErrReply) {
			t.Errorf("%.40q: %#v, %v; want %v", wire, got, err, ErrReply)
		}
	}
}

func TestReadReplyOfCutStream(t *testing.T) {
	for _, c := range replies {
		for cut := range min(len(c.encoded), 100) {
			_, err := ReadReply(bufio.NewReader(strings.NewReader(c.encoded[:cut])))
			if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("%q: %v; want the end of the stream", c.encoded[:cut], err)
			}
		}
	}
}

func TestAppendCommand(t *testing.T) {
	got := string(AppendCommand([]byte("x"), "LOCK", "", "a\r\n"))
	if want := "x*3\r\n$4\r\nLOCK\r\n$0\r\n\r\n$3\r\na\r\n\r\n"; got != want {
		t.Errorf("%q; want %q", got, want)
	}
}

// FuzzReadReply checks that no input causes a panic, and that ReadReply reads no bytes beyond the
// end of a reply.
func FuzzReadReply(f *testing.F) {
	for _, wire := range slices.Concat(encodedReplies(), invalidReplies) {
		if len(wire) < 1000 { // long seeds make the fuzzer spend its time on shortening them
			f.Add([]byte(wire))
		}
	}
	f.Fuzz(func(t *testing.T, wire []byte) {
		input := bytes.NewReader(wire)
		r := bufio.NewReader(input)
		if _, err := ReadReply(r); err != nil {
			return
		}
		used := len(wire) - input.Len() - r.Buffered()
		if used <= 0 {
			t.Fatalf("%q: a reply out of %d bytes", wire, used)
		}
		if _, err := ReadReply(bufio.NewReader(bytes.NewReader(wire[:used]))); err != nil {
			t.Fatalf("%q alone: %v", wire[:used], err)
		}
	})
}

func encodedReplies() []string {
	var encodings []string
	for _, c := range replies {
		encodings = append(encodings, c.encoded)
	}
	return encodings
}
