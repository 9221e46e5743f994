package resp

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unsafe"
)

// String returns the event's name.
func (e FrameEvent) String() string {
	return [...]string{"more", "name", "end", "empty"}[e]
}

// frameTrace passes the chunks to a scanner as a session does, and records the events with their
// offsets in the stream. It overwrites the consumed bytes after each scan, since the scanner must
// not refer to them.
func frameTrace(l RequestLimits, chunks ...[]byte) (trace []string) {
	s, offset := NewFrameScanner(l), 0
	for _, chunk := range chunks {
		chunk = slices.Clone(chunk)
		for {
			n, ev, err := s.Scan(chunk)
			for i := range n {
				chunk[i] = 0xff
			}
			offset, chunk = offset+n, chunk[n:]
			if err != nil {
				return append(trace, fmt.Sprintf("error@%d %v", offset, err))
			}
			if ev == FrameMore {
				break
			}
			trace = append(trace, frameStep(&s, ev, offset))
		}
		if len(chunk) > 0 {
			return append(trace, fmt.Sprintf("left %q at %d", chunk, offset))
		}
	}
	return trace
}

// frameStep returns the line of a trace for an event.
func frameStep(s *FrameScanner, ev FrameEvent, offset int) string {
	step := fmt.Sprintf("%v@%d", ev, offset)
	if ev != FrameName {
		return step
	}
	name, long := s.Name()
	step += fmt.Sprintf(" %q", name)
	if long {
		step += "…"
	}
	if s.IsInline() || s.InlineArgs() != nil {
		step += fmt.Sprintf(" inline %q", s.InlineArgs())
	}
	return step
}

var frameName64, frameName65 = strings.Repeat("n", 64), strings.Repeat("n", 65)

// frameExample holds a stream and the trace that the scanner must produce for it.
type frameExample struct {
	title, in string
	want      []string
}

// frameExamples holds requests and their traces. A test compares them with redis-server's replies,
// so each command must have exactly one reply.
var frameExamples = []frameExample{
	{"nothing", "", nil},
	{"array", "*1\r\n$4\r\nPING\r\n", []string{`name@12 "PING"`, "end@14"}},
	{"array with arguments", "*2\r\n$4\r\nECHO\r\n$2\r\nhi\r\n", []string{`name@12 "ECHO"`, "end@22"}},
	{"pipeline", "*1\r\n$4\r\nPING\r\nPING\r\n*1\r\n$4\r\nPING\r\n", []string{`name@12 "PING"`, "end@14",
		`name@20 "PING" inline ["PING"]`, "end@20", `name@32 "PING"`, "end@34"}},
	{"line breaks in a payload", "*2\r\n$4\r\nECHO\r\n$6\r\n\r\n*1\r\n\r\n", []string{`name@12 "ECHO"`, "end@26"}},
	{"empty name", "*1\r\n$0\r\n\r\n", []string{`name@8 ""`, "end@10"}},
	{"empty argument", "*2\r\n$4\r\nECHO\r\n$0\r\n\r\n", []string{`name@12 "ECHO"`, "end@20"}},
	{"name of 64 bytes", "*1\r\n$64\r\n" + frameName64 + "\r\n", []string{`name@73 "` + frameName64 + `"`, "end@75"}},
	{"name of 65 bytes is reported at the 64th", "*1\r\n$65\r\n" + frameName65 + "\r\n",
		[]string{`name@73 "` + frameName64 + `"…`, "end@76"}},
	{"name with a line break and a zero byte", "*1\r\n$3\r\n\n\x00\r\r\n", []string{`name@11 "\n\x00\r"`, "end@13"}},
	{"two arguments of 10 bytes and more", "*3\r\n$4\r\nECHO\r\n$10\r\n0123456789\r\n$11\r\n0123456789a\r\n",
		[]string{`name@12 "ECHO"`, "end@49"}},

	{"any byte behind a header's CR", "*1\rx$4\ryPING\r\n", []string{`name@12 "PING"`, "end@14"}},
	{"any two bytes behind a payload", "*2\r\n$4\r\nECHOxy$2\r\nhi*1", []string{`name@12 "ECHO"`, "end@22"}},
	{"line breaks the other way round", "*1\r\n$4\r\nPING\n\rPING\n", []string{`name@12 "PING"`, "end@14",
		`name@19 "PING" inline ["PING"]`, "end@19"}},
	{"header with LF only", "*1\n$4\r\nPING\r\n", []string{"error@7 Protocol error: invalid multibulk length"}},
	{"header without its last byte", "*0\r", nil},

	{"no arguments", "*0\r\nPING\r\n", []string{"empty@4", `name@10 "PING" inline ["PING"]`, "end@10"}},
	{"null array", "*-1\r\n", []string{"empty@5"}},
	{"any negative count", "*-9223372036854775808\r\n", []string{"empty@23"}},
	{"negative count out of range", "*-9223372036854775809\r\n",
		[]string{"error@23 Protocol error: invalid multibulk length"}},
	{"empty lines", "\n\r\n \t\v\f\r \r\n", []string{"empty@1", "empty@3", "empty@11"}},

	{"count missing", "*\r\n", []string{"error@3 Protocol error: invalid multibulk length"}},
	{"count with leading zero", "*01\r\n", []string{"error@5 Protocol error: invalid multibulk length"}},
	{"count 00", "*00\r\n", []string{"error@5 Protocol error: invalid multibulk length"}},
	{"count with plus", "*+1\r\n", []string{"error@5 Protocol error: invalid multibulk length"}},
	{"count minus zero", "*-0\r\n", []string{"error@5 Protocol error: invalid multibulk length"}},
	{"count minus", "*-\r\n", []string{"error@4 Protocol error: invalid multibulk length"}},
	{"count -01", "*-01\r\n", []string{"error@6 Protocol error: invalid multibulk length"}},
	{"count with blank", "* 1\r\n", []string{"error@5 Protocol error: invalid multibulk length"}},
	{"count with blank behind", "*1 \r\n", []string{"error@5 Protocol error: invalid multibulk length"}},
	{"count with underscore", "*1_0\r\n", []string{"error@6 Protocol error: invalid multibulk length"}},
	{"count in hex", "*0x1\r\n", []string{"error@6 Protocol error: invalid multibulk length"}},
	{"count over 2147483647", "*2147483648\r\n", []string{"error@13 Protocol error: invalid multibulk length"}},
	{"largest count", "*2147483647\r\n$4\r\nPING\r\n", []string{`name@21 "PING"`}},
	{"count of 64 bits", "*18446744073709551617\r\n", []string{"error@23 Protocol error: invalid multibulk length"}},
	{"huge count", "*1000000000000\r\n", []string{"error@16 Protocol error: invalid multibulk length"}},
	{"huge count behind a command", "PING\r\n*9223372036854775807\r\n", []string{`name@6 "PING" inline ["PING"]`,
		"end@6", "error@28 Protocol error: invalid multibulk length"}},

	{"another byte than $", "*1\r\nx4\r\n", []string{"error@8 Protocol error: expected '$', got 'x'"}},
	{"another byte than $ in a later argument", "*2\r\n$4\r\nECHO\r\n:1\r\n",
		[]string{`name@12 "ECHO"`, "error@18 Protocol error: expected '$', got ':'"}},
	{"a byte that is no character", "*1\r\n\xff\r\n", []string{"error@7 Protocol error: expected '$', got '\xff'"}},
	{"CR shown as a blank", "*1\r\n\r\n", []string{"error@6 Protocol error: expected '$', got ' '"}},
	{"CR before the bulk", "*1\r\n\r$4\r\nPING\r\n", []string{"error@6 Protocol error: expected '$', got ' '"}},
	{"LF shown as a blank", "*1\r\n\n\r\n", []string{"error@7 Protocol error: expected '$', got ' '"}},
	{"another byte than $, line unfinished", "*1\r\nx", nil},
	{"null bulk", "*1\r\n$-1\r\n", []string{"error@9 Protocol error: invalid bulk length"}},
	{"size missing", "*1\r\n$\r\n", []string{"error@7 Protocol error: invalid bulk length"}},
	{"size with leading zero", "*1\r\n$03\r\n", []string{"error@9 Protocol error: invalid bulk length"}},
	{"size with plus", "*1\r\n$+3\r\n", []string{"error@9 Protocol error: invalid bulk length"}},
	{"size minus zero", "*1\r\n$-0\r\n", []string{"error@9 Protocol error: invalid bulk length"}},
	{"size with letters", "*1\r\n$3x\r\n", []string{"error@9 Protocol error: invalid bulk length"}},
	{"size of 64 bits", "*1\r\n$18446744073709551619\r\n", []string{"error@27 Protocol error: invalid bulk length"}},
	{"huge size", "*1\r\n$9223372036854775807\r\n", []string{"error@26 Protocol error: invalid bulk length"}},
	{"size over 512 MB", "*1\r\n$536870913\r\n", []string{"error@16 Protocol error: invalid bulk length"}},
	{"size of 512 MB", "*1\r\n$536870912\r\nPI", nil},

	{"inline", "ECHO hi\r\n", []string{`name@9 "ECHO" inline ["ECHO" "hi"]`, "end@9"}},
	{"inline with LF only", "ECHO hi\n", []string{`name@8 "ECHO" inline ["ECHO" "hi"]`, "end@8"}},
	{"inline with two CR", "PING\r\r\n", []string{`name@7 "PING" inline ["PING"]`, "end@7"}},
	{"inline with quotes", `"\x45CHO" 'it\'s'` + "\n", []string{`name@18 "ECHO" inline ["ECHO" "it's"]`, "end@18"}},
	{"inline with an empty name", "''\n", []string{`name@3 "" inline [""]`, "end@3"}},
	{"inline with a long name", frameName65 + "\n", []string{`name@66 "` + frameName64 + `"… inline ["` +
		frameName65 + `"]`, "end@66"}},
	{"inline beginning with $", "$3 foo\r\n", []string{`name@8 "$3" inline ["$3" "foo"]`, "end@8"}},
	{"array behind a blank is inline", " *1\r\n", []string{`name@5 "*1" inline ["*1"]`, "end@5"}},
	{"inline without an end", "PING", nil},
	{"quote left open", "ECHO \"hi\r\n", []string{"error@10 Protocol error: unbalanced quotes in request"}},
	{"quote within a word", "ECHO 'a'b\r\n", []string{"error@11 Protocol error: unbalanced quotes in request"}},
	{"a zero byte hides the end of a line", "PING\x00\r\nPING\r\n", nil},
	{"a zero byte hides the end of a header", "*1\x00\r\n$4\r\nPING\r\n", nil},
	{"a zero byte hides the end of a bulk's header", "*1\r\n$4\x00\r\nPING\r\n", nil},
	{"longest line", "PING" + strings.Repeat(" ", 64<<10-4) + "\n", []string{`name@65537 "PING" inline ["PING"]`,
		"end@65537"}},
	{"line too long", strings.Repeat("a", 64<<10+1), []string{"error@65537 Protocol error: too big inline request"}},
	{"line too long behind a zero byte", "\x00\n" + strings.Repeat("\n", 64<<10),
		[]string{"error@65537 Protocol error: too big inline request"}},
	{"count too long", "*" + strings.Repeat("1", 64<<10),
		[]string{"error@65537 Protocol error: too big mbulk count string"}},
	{"longest count", "*" + strings.Repeat("1", 64<<10-1) + "\r\n",
		[]string{"error@65538 Protocol error: invalid multibulk length"}},
	{"size too long", "*1\r\n$" + strings.Repeat("1", 64<<10),
		[]string{"error@65541 Protocol error: too big bulk count string"}},
	{"size too long behind a zero byte", "*1\r\n$\x00" + strings.Repeat("\r", 64<<10),
		[]string{"error@65541 Protocol error: too big bulk count string"}},

	{"HTTP request", "POST / HTTP/1.1\r\nHost: x\r\n\r\nPING\r\n", []string{"error@17 " + errCrossProtocol.Error()}},
	{"HTTP header", "PING\r\nhOST: x\r\n", []string{`name@6 "PING" inline ["PING"]`, "end@6", "error@15 " +
		errCrossProtocol.Error()}},
	{"HTTP in an array", "*1\r\n$4\r\npost\r\n", []string{"error@12 " + errCrossProtocol.Error()}},
	{"HTTP up to a zero byte", "*1\r\n$6\r\nPoSt\x00x\r\n", []string{"error@14 " + errCrossProtocol.Error()}},
	{"not quite HTTP", "POS\nPOSTS\nHost\n\"po\xc5\xbft\"\n", []string{`name@4 "POS" inline ["POS"]`, "end@4",
		`name@10 "POSTS" inline ["POSTS"]`, "end@10", `name@15 "Host" inline ["Host"]`, "end@15",
		`name@23 "poſt" inline ["poſt"]`, "end@23"}},
	{"HTTP as an argument", "ECHO POST\n", []string{`name@10 "ECHO" inline ["ECHO" "POST"]`, "end@10"}},
}

// unauthenticatedExamples is like frameExamples, for a client that has not logged in.
var unauthenticatedExamples = []frameExample{
	{"10 arguments", "*10\r\n$1\r\nx\r\n", []string{`name@10 "x"`}},
	{"11 arguments", "*11\r\n", []string{"error@5 Protocol error: unauthenticated multibulk length"}},
	{"largest count", "*2147483647\r\n", []string{"error@13 Protocol error: unauthenticated multibulk length"}},
	{"count over 2147483647", "*2147483648\r\n", []string{"error@13 Protocol error: invalid multibulk length"}},
	{"16384 bytes", "*1\r\n$16384\r\n", nil},
	{"16385 bytes", "*1\r\n$16385\r\n", []string{"error@12 Protocol error: unauthenticated bulk length"}},
	{"512 MB", "*1\r\n$536870912\r\n", []string{"error@16 Protocol error: unauthenticated bulk length"}},
	{"over 512 MB", "*1\r\n$536870913\r\n", []string{"error@16 Protocol error: invalid bulk length"}},
	{"inline of 11 arguments", "PING 1 2 3 4 5 6 7 8 9 10\n",
		[]string{`name@26 "PING" inline ["PING" "1" "2" "3" "4" "5" "6" "7" "8" "9" "10"]`, "end@26"}},
}

func TestFrameScanner(t *testing.T) {
	checkFrameExamples(t, DefaultRequestLimits(), frameExamples)
	checkFrameExamples(t, UnauthenticatedLimits(), unauthenticatedExamples)
}

func checkFrameExamples(t *testing.T, l RequestLimits, examples []frameExample) {
	for _, tt := range examples {
		t.Run(tt.title, func(t *testing.T) {
			if got := frameTrace(l, []byte(tt.in)); !slices.Equal(got, tt.want) {
				t.Errorf("%.80q:\n got %q\nwant %q", tt.in, got, tt.want)
			}
		})
	}
}

func TestFrameScannerFinalError(t *testing.T) {
	var requestErr *RequestError
	s := NewFrameScanner(DefaultRequestLimits())
	_, _, first := s.Scan([]byte("*x\r\nPING\r\n"))
	for _, p := range []string{"", "PING\r\n"} {
		if n, ev, err := s.Scan([]byte(p)); n != 0 || ev != FrameMore || err != first || !errors.As(err, &requestErr) {
			t.Errorf("scan(%q) after %v: %d, %v, %v", p, first, n, ev, err)
		}
	}
}

// feedFrame passes the same piece to the scanner again and again; pieces is the number of times. It
// returns the number of events.
func feedFrame(t *testing.T, s *FrameScanner, piece []byte, pieces int) (events int) {
	for range pieces {
		for p := piece; ; {
			n, ev, err := s.Scan(p)
			if err != nil {
				t.Fatal(err)
			}
			if p = p[n:]; ev == FrameMore {
				break
			}
			events++
		}
	}
	return events
}

// TestFrameScannerMemory checks that the scanner allocates no memory for large frames and
// for many frames.
func TestFrameScannerMemory(t *testing.T) {
	tests := []struct {
		title, head, piece string
		pieces, events     int
	}{
		{"4 MB a byte at a time", "*2\r\n$4\r\nECHO\r\n$4194302\r\n", "x", 4 << 20, 1},
		{"4 MB name a byte at a time", "*1\r\n$4194302\r\n", "x", 4 << 20, 2},
		{"512 MB", "*2\r\n$4\r\nECHO\r\n$536870910\r\n", strings.Repeat("x", 1<<20), 512, 1},
		{"a million arguments", "*1000001\r\n$1\r\nx\r\n", "$1\r\nx\r\n", 1e6, 1},
		{"a million commands", "", "*1\r\n$4\r\nPING\r\n", 1e6, 2e6},
	}
	for _, tt := range tests {
		t.Run(tt.title, func(t *testing.T) {
			var s FrameScanner
			head, piece := []byte(tt.head), []byte(tt.piece)
			allocs := testing.AllocsPerRun(1, func() {
				s = NewFrameScanner(DefaultRequestLimits())
				feedFrame(t, &s, head, 1)
				if events := feedFrame(t, &s, piece, tt.pieces); events != tt.events {
					t.Errorf("%d events, want %d", events, tt.events)
				}
			})
			if allocs > 0 || s.state != betweenFrames {
				t.Errorf("%v allocations, state %d", allocs, s.state)
			}
		})
	}
}

func TestFrameScannerSize(t *testing.T) {
	s := NewFrameScanner(DefaultRequestLimits())
	if size := unsafe.Sizeof(s); size > 200 {
		t.Errorf("a scanner takes %d bytes", size)
	}
	feedFrame(t, &s, []byte("ECHO "+strings.Repeat("x", 60<<10)), 1)
	if s.inline == nil || len(s.inline.line) < 60<<10 {
		t.Error("the beginning of an incomplete line is not kept")
	}
	for _, rest := range []string{"\n", ""} {
		if _, ev, _ := s.Scan([]byte(rest)); ev == FrameMore || len(s.InlineArgs()) != 2 || s.inline.line != nil {
			t.Errorf("%v: arguments %.40q", ev, s.InlineArgs())
		}
	}
	if s.Scan(nil); s.inline != nil {
		t.Error("the command outlives its frame")
	}
	feedFrame(t, &s, []byte("x"), 100)
	feedFrame(t, &s, []byte{0}, 1)
	if s.inline.line != nil {
		t.Error("a line is kept that can have no end")
	}
}

var frameSmallSet = []byte("*3\r\n$3\r\nSET\r\n$5\r\nkey:1\r\n$5\r\nvalue\r\n")

// BenchmarkScanSmallSet scans a command that arrives in one piece.
func BenchmarkScanSmallSet(b *testing.B) {
	s := NewFrameScanner(DefaultRequestLimits())
	b.ReportAllocs()
	for b.Loop() {
		n, ev, _ := s.Scan(frameSmallSet)
		if ev != FrameName {
			b.Fatal(ev)
		}
		if _, ev, _ = s.Scan(frameSmallSet[n:]); ev != FrameEnd {
			b.Fatal(ev)
		}
	}
}

// BenchmarkScanByteByByte scans the same command, which arrives byte by byte.
func BenchmarkScanByteByByte(b *testing.B) {
	s := NewFrameScanner(DefaultRequestLimits())
	b.ReportAllocs()
	for b.Loop() {
		for i := range frameSmallSet {
			if _, _, err := s.Scan(frameSmallSet[i : i+1]); err != nil {
				b.Fatal(err)
			}
		}
	}
}
