package resp

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// frameLimits holds the limits for fuzzing, including small limits that short inputs reach.
var frameLimits = []RequestLimits{
	DefaultRequestLimits(),
	UnauthenticatedLimits(),
	{MaxArgs: 3, MaxBulk: 70, MaxInline: 64},
}

func TestRequestLimits(t *testing.T) {
	if got, want := (RequestLimits{MaxArgs: -1}).withDefaults(), DefaultRequestLimits(); got != want {
		t.Errorf("open limits: got %+v, want %+v", got, want)
	}
	l := RequestLimits{MaxArgs: math.MaxInt, MaxBulk: math.MaxInt64, MaxInline: 1}
	if got, want := l.withDefaults(), (RequestLimits{MaxArgs: redisMaxArgs, MaxBulk: math.MaxInt64,
		MaxInline: 64}); got != want {
		t.Errorf("extreme limits: got %+v, want %+v", got, want)
	}
	frame := []byte("*2\r\n$1\r\nx\r\n$9223372036854775807\r\n")
	if got := frameTrace(l, frame, frame); !slices.Equal(got, []string{`name@9 "x"`}) {
		t.Errorf("a bulk without a limit: %q", got)
	}
}

// TestFrameScannerChangesLimits checks that if a client logs in or out in the middle of a line, the
// new limits apply to that line.
func TestFrameScannerChangesLimits(t *testing.T) {
	var requestErr *RequestError
	for _, in := range []string{"aaa", "*11", "*1\r\n$11"} {
		s := NewFrameScanner(DefaultRequestLimits())
		if n, ev, err := s.Scan([]byte(in + strings.Repeat("1", 100))); n != len(in)+100 || ev != FrameMore || err != nil {
			t.Fatalf("%q: %d, %v, %v", in, n, ev, err)
		}
		s.SetLimits(RequestLimits{MaxInline: 64})
		if n, ev, err := s.Scan([]byte("\r\n")); n != 0 || ev != FrameMore || !errors.As(err, &requestErr) {
			t.Errorf("%q: %d, %v, %v", in, n, ev, err)
		}
	}
}

// FuzzFrameSplit checks that the scanner agrees with the reference parser, however the input is cut
// into pieces.
func FuzzFrameSplit(f *testing.F) {
	// maxSize is in bytes: long inputs slow down the fuzzer, and the small limits do not need them.
	const maxSize = 1 << 10
	for i, example := range slices.Concat(frameExamples, unauthenticatedExamples) {
		if len(example.in) <= maxSize {
			f.Add([]byte(example.in), uint64(i))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, seed uint64) {
		checkFrameSplit(t, data[:min(len(data), maxSize)], seed)
	})
}

func TestFrameSplitExamples(t *testing.T) {
	for _, example := range slices.Concat(frameExamples, unauthenticatedExamples) {
		for seed := range frameLimits {
			checkFrameSplit(t, []byte(example.in), uint64(seed))
		}
	}
}

// TestFrameSplitRandom checks that scanner and reference parser agree on random mixtures of
// fragments, which get further than random bytes.
func TestFrameSplitRandom(t *testing.T) {
	for seed := range uint64(1000) {
		checkFrameSplit(t, randomFrames(rand.New(rand.NewPCG(1, seed))), seed)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func checkFrameSplit(t *testing.T, data []byte, seed uint64) {
	limits := frameLimits[seed%uint64(len(frameLimits))].withDefaults()
	want := referenceFrames(data, limits)
	cuts := [][][]byte{
		{data},
		slices.Collect(slices.Chunk(data, 1)),
		cutFrames(data, rand.New(rand.NewPCG(2, seed))),
	}
	for at := 0; at < min(len(data), 100) && len(data) <= 1<<10; at++ {
		cuts = append(cuts, [][]byte{data[:at], data[at:]})
	}
	for cut, chunks := range cuts {
		if got := frameTrace(limits, chunks...); !slices.Equal(got, want) {
			t.Errorf("%.200q, cut %d:\n got %q\nwant %q", data, cut, got, want)
		}
	}
}

// cutFrames cuts data into pieces, some of them empty.
func cutFrames(data []byte, rng *rand.Rand) (chunks [][]byte) {
	maxSize := 1 << rng.IntN(12)
	for len(data) > 0 {
		n := min(rng.IntN(maxSize+1), len(data))
		chunks, data = append(chunks, data[:n]), data[n:]
	}
	return append(chunks, nil)
}

var frameFragments = []string{
	"*1\r\n", "*2\r\n", "*3\r\n", "*11\r\n", "*0\r\n", "*-1\r\n", "*", "*2", "*\r\n", "*4\r\n",
	"$4\r\nPING\r\n", "$4\r\nECHO\r\n", "*1\r\n$4\r\npost\r\n", "$1\r\nx\r\n", "$0\r\n\r\n", "$12\r\nhello world!\r\n",
	"$70\r\n" + strings.Repeat("p", 70) + "\r\n", "$71\r\n" + strings.Repeat("p", 71) + "\r\n", "$16385\r\n", "$",
	"$4\r\n", "$-1\r\n", "$01\r\n", "$+1\r\n", "$536870913\r\n",
	"$18446744073709551617\r\n", "9223372036854775807\r\n", "2147483648\r\n", "0", "1", "-", "+",
	"PING\r\n", "PING\n", "ECHO ", "Host: x\n", "word", "\r", "\n", "\r\n", " ", "\t", "\v", "\f", "\x00", "\xff",
	"\"", "'", "\\", "\\x41", "\\n", "\"q u\"", "'q u'", strings.Repeat("z", 64),
}

// randomFrames concatenates fragments of requests.
func randomFrames(rng *rand.Rand) (in []byte) {
	for range 1 + rng.IntN(12) {
		if rng.IntN(3) == 0 {
			in = append(in, "*2\r\n$4\r\nECHO\r\n$2\r\nhi\r\n"...)
		}
		in = append(in, frameFragments[rng.IntN(len(frameFragments))]...)
	}
	return in
}

// referenceParser parses a complete stream in a simple way, after Redis' rules.
type referenceParser struct {
	RequestLimits
	in    []byte
	pos   int
	trace []string
}

// referenceFrames returns the trace that the scanner must produce for the input.
func referenceFrames(in []byte, l RequestLimits) []string {
	d := &referenceParser{RequestLimits: l, in: in}
	for d.pos < len(in) && d.frame() {
	}
	return d.trace
}

func (d *referenceParser) record(at int, format string, args ...any) bool {
	step := fmt.Sprintf(format, args...)
	event, rest, found := strings.Cut(step, " ")
	if step = fmt.Sprintf("%s@%d", event, at); found {
		step += " " + rest
	}
	d.trace = append(d.trace, step)
	return event != "error"
}

// frame parses one frame, if it is complete and well-formed.
func (d *referenceParser) frame() bool {
	if d.in[d.pos] != '*' {
		line, ok := d.line('\n', 0, "too big inline request")
		return ok && d.inline(line)
	}
	line, ok := d.line('\r', 1, "too big mbulk count string")
	if !ok {
		return false
	}
	count, ok := referenceNumber(line[1:])
	switch {
	case !ok || count > math.MaxInt32 || count > int64(d.MaxArgs) && !d.unauthenticated:
		return d.record(d.pos, "error Protocol error: invalid multibulk length")
	case count > int64(d.MaxArgs):
		return d.record(d.pos, "error Protocol error: unauthenticated multibulk length")
	case count <= 0:
		return d.record(d.pos, "empty")
	}
	for i := range count {
		if !d.bulk(i == 0) {
			return false
		}
	}
	return d.record(d.pos, "end")
}

// line consumes a line and the given number of trailing bytes after its end.
func (d *referenceParser) line(end byte, trailing int, tooLong string) (line []byte, ok bool) {
	rest := d.in[d.pos:]
	visible, _, _ := bytes.Cut(rest, []byte{0})
	i := bytes.IndexByte(visible, end)
	if i < 0 && len(rest) > d.MaxInline || i > d.MaxInline {
		return nil, d.record(d.pos+d.MaxInline+1, "error Protocol error: %s", tooLong)
	}
	if i < 0 || i+trailing >= len(rest) {
		return nil, false
	}
	d.pos += i + 1 + trailing
	return rest[:i], true
}

func (d *referenceParser) inline(line []byte) bool {
	args, ok := referenceSplitInline(bytes.TrimSuffix(line, []byte("\r")))
	if !ok {
		return d.record(d.pos, "error Protocol error: unbalanced quotes in request")
	}
	if len(args) == 0 {
		return d.record(d.pos, "empty")
	}
	size := len(args[0])
	return d.name(d.pos, []byte(args[0])[:min(size, 64)], size, fmt.Sprintf(" inline %q", args)) && d.record(d.pos, "end")
}

func (d *referenceParser) bulk(first bool) bool {
	line, ok := d.line('\r', 1, "too big bulk count string")
	if !ok {
		return false
	}
	if !bytes.HasPrefix(line, []byte("$")) {
		got := append(line, '\r')[:1]
		return d.record(d.pos, "error Protocol error: expected '$', got '%s'",
			strings.NewReplacer("\r", " ", "\n", " ").Replace(string(got)))
	}
	size, ok := referenceNumber(line[1:])
	switch {
	case !ok || size < 0 || size > 512<<20 || size > d.MaxBulk && !d.unauthenticated:
		return d.record(d.pos, "error Protocol error: invalid bulk length")
	case size > d.MaxBulk:
		return d.record(d.pos, "error Protocol error: unauthenticated bulk length")
	}
	rest, stored := d.in[d.pos:], int(min(size, 64))
	if first && len(rest) >= max(stored, 1) && !d.name(d.pos+stored, rest[:stored], int(size), "") {
		return false
	}
	d.pos += int(size) + 2
	return len(rest) >= int(size)+2
}

// name adds a name of size bytes to the trace; stored is the part that the scanner stores.
func (d *referenceParser) name(at int, stored []byte, size int, inline string) bool {
	if referenceHTTP.Match(stored) {
		return d.record(at, "error %v", errCrossProtocol)
	}
	ellipsis := ""
	if size > len(stored) {
		ellipsis = "…"
	}
	return d.record(at, "name %q%s%s", stored, ellipsis, inline)
}

var (
	referenceHTTP   = regexp.MustCompile(`\A([pP][oO][sS][tT]|[hH][oO][sS][tT]:)(\x00|\z)`)
	referenceDigits = regexp.MustCompile(`\A(0|-?[1-9][0-9]*)\z`)
)

func referenceNumber(b []byte) (number int64, ok bool) {
	number, err := strconv.ParseInt(string(b), 10, 64)
	return number, err == nil && referenceDigits.Match(b)
}

// TestFrameScannerAgainstRedis checks that the scanner finds the same frames as redis-server, and
// refuses the same input with the same error.
func TestFrameScannerAgainstRedis(t *testing.T) {
	openSocket, passwordSocket := startFrameRedis(t), startFrameRedis(t, "--requirepass", "secret")
	for _, example := range frameExamples {
		compareFrames(t, openSocket, DefaultRequestLimits(), example.in)
	}
	for _, example := range unauthenticatedExamples {
		compareFrames(t, passwordSocket, UnauthenticatedLimits(), example.in)
	}
	for seed := range uint64(1000) {
		in := string(randomFrames(rand.New(rand.NewPCG(3, seed))))
		compareFrames(t, openSocket, DefaultRequestLimits(), in)
		compareFrames(t, passwordSocket, UnauthenticatedLimits(), in)
	}
}

// compareFrames checks that Redis and the scanner find the same number of commands, and the same
// protocol error after them.
func compareFrames(t *testing.T, socket string, l RequestLimits, in string) {
	t.Helper()
	trace, want := frameTrace(l, []byte(in)), []string(nil)
	for _, step := range trace {
		if strings.HasPrefix(step, "end@") {
			want = append(want, "reply")
		}
		if _, text, found := strings.Cut(step, " Protocol error: "); found {
			want = append(want, "-ERR Protocol error: "+text+"\r\n")
		}
	}
	replies := askFrameRedis(t, socket, in)
	for i, reply := range replies {
		if !strings.HasPrefix(reply, "-ERR Protocol error: ") {
			replies[i] = "reply"
		}
	}
	if len(trace) > 0 && strings.HasSuffix(trace[len(trace)-1], errCrossProtocol.Error()) {
		// Redis may close the connection before it has written all replies.
		want = want[:min(len(replies), len(want))]
	}
	if !slices.Equal(replies, want) {
		t.Errorf("%.200q:\nredis %q\n want %q", in, replies, want)
	}
}
