package resp

import (
	"bytes"
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// replyExamples holds streams of replies and their traces.
var replyExamples = []struct {
	in   string
	want []string // by replyTrace
}{
	{"", nil},
	{"+OK\r\n", []string{"+@5"}},
	{"+\r\n-\r\n", []string{"+@3", "-@6"}},
	{"-ERR no\r\n:12\r\n:-7\r\n", []string{"-@9", ":@14 last=12", ":@19 last=-7"}},
	{"$3\r\nabc\r\n", []string{"$@9"}},
	{"$0\r\n\r\n$-1\r\n", []string{"$@6", "$@11"}},
	{"$12\r\n+OK\r\n-ERR\r\n\r\n\r\n", []string{"$@19", "error"}},
	{"*0\r\n*-1\r\n_\r\n", []string{"*@4", "*@9", "_@12"}},
	{"*2\r\n:1\r\n$1\r\nx\r\n+OK\r\n", []string{"*@15 last=1", "+@20"}},
	{"*3\r\n*0\r\n*-1\r\n*2\r\n:1\r\n*1\r\n:2\r\n+OK\r\n", []string{"*@29 last=2", "+@34"}},
	{"*1\r\n*1\r\n*1\r\n*1\r\n$1\r\nx\r\n", []string{"*@23"}},
	{"%2\r\n+a\r\n:1\r\n+b\r\n*1\r\n:2\r\n", []string{"%@24 last=2"}},
	{"%0\r\n~0\r\n>0\r\n", []string{"%@4", "~@8", ">@12"}},
	{"~2\r\n#t\r\n#f\r\n,3.14\r\n,inf\r\n(123456789012345678901234567890\r\n", []string{"~@12", ",@19", ",@25", "(@58"}},
	{"=8\r\ntxt:abcd\r\n!5\r\nERR x\r\n", []string{"=@14", "!@25"}},
	{"|1\r\n+ttl\r\n:3600\r\n$1\r\nx\r\n+OK\r\n", []string{"|@24 last=3600", "+@29"}},
	{"*2\r\n|1\r\n+a\r\n+b\r\n:1\r\n:2\r\n", []string{"*@24 last=2"}},
	{"|0\r\n+OK\r\n|1\r\n|0\r\n+a\r\n+b\r\n+OK\r\n", []string{"|@9", "|@30"}},
	{"*2\r\n>2\r\n+a\r\n+b\r\n:1\r\n>0\r\n:2\r\n+OK\r\n", []string{"*@28 last=2", "+@33"}},
	{">3\r\n$7\r\nmessage\r\n$1\r\na\r\n$1\r\nb\r\n", []string{`>@31 message`}},
	{"*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n", []string{`*@30 subscribe last=1`}},
	{"*3\r\n$12\r\npunsubscribe\r\n$-1\r\n:0\r\n", []string{`*@32 punsubscribe last=0`}},
	{"$100\r\nabc", nil},
	{"*2\r\n:1\r\n", nil},
	{"+" + strings.Repeat("s", 300) + "\r\n", []string{"+@303"}},
	{"$00000000000000000000000000000003\r\nabc\r\n", []string{"$@40"}},
	{"\r\n", []string{"error"}},
	{"x\r\n", []string{"error"}},
	{"+OK\r\nx\r\n+OK\r\n", []string{"+@5", "error"}},
	{"$x\r\n", []string{"error"}},
	{"$\r\n", []string{"error"}},
	{"$-2\r\n", []string{"error"}},
	{"$99999999999999999999\r\n", []string{"error"}},
	{"*?\r\n", []string{"error"}},
	{":x\r\n", []string{"error"}},
	{":99999999999999999999\r\n", []string{"error"}},
	{"$" + strings.Repeat("0", 70) + "1\r\nx\r\n", []string{"error"}},
	{"$" + strings.Repeat("0", 70), []string{"error"}},
	{"%1\r\n:1\r\n", nil},
	{"*1\r\n\r\n", []string{"error"}},
}

func TestReplyScanner(t *testing.T) {
	for _, example := range replyExamples {
		if got := replyTrace([]byte(example.in)); !slices.Equal(got, example.want) {
			t.Errorf("%q: got %q, want %q", example.in, got, example.want)
		}
		checkReplySplit(t, []byte(example.in), 1)
	}
}

// replyTrace returns a line for each reply in a stream of chunks: its kind, its end, the word of a
// message, and the last integer.
func replyTrace(chunks ...[]byte) (trace []string) {
	s := ReplyScanner{KeepHead: true}
	at := 0
	for _, chunk := range chunks {
		for len(chunk) > 0 {
			s.lastInt = noInteger
			n, ended, err := s.Scan(chunk)
			at, chunk = at+n, chunk[n:]
			if err != nil {
				return append(trace, "error")
			}
			if ended {
				trace = append(trace, describeReply(s.kind, at, s.Message(), s.lastInt))
			}
		}
	}
	return trace
}

const noInteger = -1 << 62

func describeReply(kind byte, end int, message string, last int64) string {
	text := fmt.Sprintf("%c@%d", kind, end)
	if slices.Contains(messageKinds, message) {
		text += " " + message
	}
	if last != noInteger {
		text += fmt.Sprintf(" last=%d", last)
	}
	return text
}

// withoutLastInt removes the last integers, which may be missing in the trace of a reply that comes
// in pieces.
func withoutLastInt(trace []string) (result []string) {
	for _, line := range trace {
		line, _, _ = strings.Cut(line, " last=")
		result = append(result, line)
	}
	return result
}

// FuzzReplySplit checks that the scanner finds the same ends of replies as the reference parser,
// however the input is cut into pieces.
func FuzzReplySplit(f *testing.F) {
	for i, example := range replyExamples {
		f.Add([]byte(example.in), uint64(i))
	}
	f.Fuzz(func(t *testing.T, data []byte, seed uint64) {
		checkReplySplit(t, data[:min(len(data), 1<<10)], seed)
	})
}

// TestReplySplitRandom checks that scanner and reference parser agree on random mixtures of
// fragments, which get further than random bytes.
func TestReplySplitRandom(t *testing.T) {
	for seed := range uint64(3000) {
		rng := rand.New(rand.NewPCG(4, seed))
		var data []byte
		for range 1 + rng.IntN(20) {
			data = append(data, replyFragments[rng.IntN(len(replyFragments))]...)
		}
		checkReplySplit(t, data, seed)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

var replyFragments = []string{
	"+OK\r\n", "-ERR x\r\n", ":1\r\n", ":-1\r\n", "_\r\n", "#t\r\n", ",1.5\r\n", "(12\r\n", "$1\r\nx\r\n", "$0\r\n\r\n",
	"$-1\r\n", "*-1\r\n", "*0\r\n",
	"*1\r\n", "*2\r\n", "*3\r\n", "%1\r\n", "%2\r\n", "~2\r\n", ">2\r\n", "|1\r\n", "=7\r\ntxt:abc\r\n",
	"!3\r\nERR\r\n", "$9\r\nsubscribe\r\n", "$7\r\nmessage\r\n",
	"$70\r\n" + strings.Repeat("p", 70) + "\r\n", "+" + strings.Repeat("t", 90) + "\r\n", "x", "\r\n", "$5\r\n", "*",
	"\n", "+a\n",
}

func checkReplySplit(t *testing.T, data []byte, seed uint64) {
	t.Helper()
	want := referenceReplies(data)
	if got := replyTrace(data); !slices.Equal(got, want) {
		t.Errorf("%.200q: got %q\nwant %q", data, got, want)
	}
	cuts := [][][]byte{
		slices.Collect(slices.Chunk(data, 1)),
		cutFrames(data, rand.New(rand.NewPCG(2, seed))),
	}
	for at := range min(len(data), 100) {
		cuts = append(cuts, [][]byte{data[:at], data[at:]})
	}
	for cut, chunks := range cuts {
		if got := withoutLastInt(replyTrace(chunks...)); !slices.Equal(got, withoutLastInt(want)) {
			t.Errorf("%.200q, cut %d:\n got %q\nwant %q", data, cut, got, want)
		}
	}
}

// referenceReplies returns the trace of a recursive parser that gets the complete stream.
func referenceReplies(data []byte) (trace []string) {
	rest := data
	for len(rest) > 0 {
		d := referenceReply{rest: rest, last: noInteger}
		switch d.parseElement(); {
		case d.isInvalid:
			return append(trace, "error")
		case d.isIncomplete:
			return trace
		}
		whole := rest[:len(rest)-len(d.rest)]
		rest = d.rest
		trace = append(trace, describeReply(whole[0], len(data)-len(rest), referenceMessage(whole), d.last))
	}
	return trace
}

// referenceMessage returns the word of a message, if it is within the first 48 bytes.
func referenceMessage(reply []byte) string {
	for _, word := range messageKinds {
		begin := fmt.Sprintf("$%d\r\n%s\r\n", len(word), word)
		header, rest, _ := bytes.Cut(reply, []byte("\r\n"))
		if bytes.ContainsAny(header[:1], "*>") && bytes.HasPrefix(rest, []byte(begin)) && len(header)+2+len(begin) <= 48 {
			return word
		}
	}
	return ""
}

// messageKinds lists the words of messages in a trace.
var messageKinds = []string{
	"message", "pmessage", "smessage", "subscribe", "unsubscribe", "psubscribe", "punsubscribe", "ssubscribe",
	"sunsubscribe",
}

type referenceReply struct {
	rest                    []byte
	depth                   int
	last                    int64
	isInvalid, isIncomplete bool // the input is not RESP; the input ends within the reply
}

// parseElement consumes one element at the beginning of rest, including nested elements.
func (d *referenceReply) parseElement() {
	if d.isInvalid || d.isIncomplete {
		return
	}
	line, rest, found := bytes.Cut(d.rest, []byte("\n"))
	text := len(line) > 0 && strings.ContainsRune("+-(,", rune(line[0]))
	switch {
	case !text && len(line) > maxHeader:
		d.isInvalid = true
		return
	case !found:
		d.isIncomplete = true
		return
	}
	d.rest = rest
	line = bytes.TrimSuffix(line, []byte("\r"))
	switch {
	case len(line) == 0:
		d.isInvalid = true
	case text, line[0] == '_', line[0] == '#':
	case line[0] == ':':
		n, ok := new(big.Int).SetString(strings.TrimPrefix(string(line[1:]), "+"), 10)
		if d.isInvalid = !ok || !n.IsInt64() || bytes.Contains(line, []byte("_")) || bytes.HasPrefix(line, []byte(":+-")) ||
			bytes.HasPrefix(line, []byte(":++")); !d.isInvalid {
			d.last = n.Int64()
		}
	default:
		d.parseSizedElement(line[0], string(line[1:]))
	}
}

// parseSizedElement consumes the rest of an element after its length.
func (d *referenceReply) parseSizedElement(kind byte, length string) {
	n, ok := new(big.Int).SetString(length, 10)
	null := length == "-1"
	limit := new(big.Int).SetInt64(maxLength*10 + 9)
	switch {
	case !strings.ContainsRune("$=!*~>%|", rune(kind)), !null && (!ok || strings.Trim(length, "0123456789") != "" ||
		n.Cmp(limit) > 0):
		d.isInvalid = true
	case strings.ContainsRune("$=!", rune(kind)):
		if !null && n.Int64()+2 > int64(len(d.rest)) {
			d.isIncomplete = true
		} else if !null {
			d.rest = d.rest[n.Int64()+2:]
		}
	case kind == '>' && d.depth > 0:
		d.parseElements(kind, n.Int64())
		d.parseElement() // the element after the push
	default:
		d.parseElements(kind, n.Int64())
	}
}

func (d *referenceReply) parseElements(kind byte, n int64) {
	if kind == '%' || kind == '|' {
		n *= 2
	}
	d.depth++
	for ; n > 0 && !d.isInvalid && !d.isIncomplete; n-- {
		d.parseElement()
	}
	d.depth--
	if kind == '|' {
		d.parseElement()
	}
}

// TestReplyScannerStoresNoText checks that the scanner does not store a text of many megabytes that
// comes in pieces.
func TestReplyScannerStoresNoText(t *testing.T) {
	s := ReplyScanner{KeepHead: true}
	piece := bytes.Repeat([]byte("x"), 16<<10)
	_, _, _ = s.Scan([]byte("-ERR "))
	if n := testing.AllocsPerRun(100, func() {
		if _, ended, err := s.Scan(piece); ended || err != nil {
			t.Fatal(ended, err)
		}
	}); n > 0 {
		t.Errorf("%v allocations for a piece", n)
	}
	if _, ended, err := s.Scan([]byte("\r\n")); !ended || err != nil || !s.Begins("-ERR x") || len(s.head) != headSize {
		t.Errorf("at the end: %v, %v, %q", ended, err, s.head)
	}
}
