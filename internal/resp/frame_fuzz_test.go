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

// frameLimits are the limits to fuzz under: small ones too, which short inputs reach.
var frameLimits = []RequestLimits{
	DefaultRequestLimits(),
	UnauthenticatedLimits(),
	{MaxArgs: 3, MaxBulk: 70, MaxInline: 64},
}

func TestLimits(t *testing.T) {
	if got, want := (RequestLimits{MaxArgs: -1}).resolved(), DefaultRequestLimits(); got != want {
		t.Errorf("open limits: got %+v, want %+v", got, want)
	}
	l := RequestLimits{MaxArgs: math.MaxInt, MaxBulk: math.MaxInt64, MaxInline: 1}
	if got, want := l.resolved(), (RequestLimits{MaxArgs: redisMaxArgs, MaxBulk: math.MaxInt64, MaxInline: 64}); got != want {
		t.Errorf("extreme limits: got %+v, want %+v", got, want)
	}
	frame := []byte("*2\r\n$1\r\nx\r\n$9223372036854775807\r\n")
	if got := frameTrace(l, frame, frame); !slices.Equal(got, []string{`name@9 "x"`}) {
		t.Errorf("a bulk without a limit: %q", got)
	}
}

// A client that logs in or out in the middle of a line meets the new limits there.
func TestFrameScannerChangesLimits(t *testing.T) {
	var protocol *RequestError
	for _, in := range []string{"aaa", "*11", "*1\r\n$11"} {
		s := NewFrameScanner(DefaultRequestLimits())
		if n, ev, err := s.Scan([]byte(in + strings.Repeat("1", 100))); n != len(in)+100 || ev != FrameMore || err != nil {
			t.Fatalf("%q: %d, %v, %v", in, n, ev, err)
		}
		s.SetLimits(RequestLimits{MaxInline: 64})
		if n, ev, err := s.Scan([]byte("\r\n")); n != 0 || ev != FrameMore || !errors.As(err, &protocol) {
			t.Errorf("%q: %d, %v, %v", in, n, ev, err)
		}
	}
}

// FuzzFrameSplit checks that the scanner tells what the dumb parser tells, and that
// it does so however its input is cut.
func FuzzFrameSplit(f *testing.F) {
	const most = 1 << 10 // bytes: long inputs slow the fuzzer down, and the small limits spare them
	for i, example := range slices.Concat(frameExamples, unauthenticatedExamples) {
		if len(example.in) <= most {
			f.Add([]byte(example.in), uint64(i))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, seed uint64) {
		checkFrameSplit(t, data[:min(len(data), most)], seed)
	})
}

func TestFrameSplitExamples(t *testing.T) {
	for _, example := range slices.Concat(frameExamples, unauthenticatedExamples) {
		for seed := range frameLimits {
			checkFrameSplit(t, []byte(example.in), uint64(seed))
		}
	}
}

// A random mixture of fragments gets further than random bytes.
func TestFrameSplitRandom(t *testing.T) {
	for seed := range uint64(1000) {
		checkFrameSplit(t, randomFrames(rand.New(rand.NewPCG(1, seed))), seed)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func checkFrameSplit(t *testing.T, data []byte, seed uint64) {
	limits := frameLimits[seed%uint64(len(frameLimits))].resolved()
	want := dumbFrames(data, limits)
	cuts := [][][]byte{
		{data},
		slices.Collect(slices.Chunk(data, 1)),
		cutFrames(data, rand.New(rand.NewPCG(2, seed))),
	}
	for at := 0; at < min(len(data), 100) && len(data) <= 1<<10; at++ {
		cuts = append(cuts, [][]byte{data[:at], data[at:]})
	}
	for how, chunks := range cuts {
		if got := frameTrace(limits, chunks...); !slices.Equal(got, want) {
			t.Errorf("%.200q, cut %d:\n got %q\nwant %q", data, how, got, want)
		}
	}
}

// cutFrames cuts data into pieces, some of them empty.
func cutFrames(data []byte, rng *rand.Rand) (chunks [][]byte) {
	most := 1 << rng.IntN(12)
	for len(data) > 0 {
		n := min(rng.IntN(most+1), len(data))
		chunks, data = append(chunks, data[:n]), data[n:]
	}
	return append(chunks, nil)
}

var frameFragments = []string{
	"*1\r\n", "*2\r\n", "*3\r\n", "*11\r\n", "*0\r\n", "*-1\r\n", "*", "*2", "*\r\n", "*4\r\n",
	"$4\r\nPING\r\n", "$4\r\nECHO\r\n", "*1\r\n$4\r\npost\r\n", "$1\r\nx\r\n", "$0\r\n\r\n", "$12\r\nhello world!\r\n",
	"$70\r\n" + strings.Repeat("p", 70) + "\r\n", "$71\r\n" + strings.Repeat("p", 71) + "\r\n", "$16385\r\n", "$", "$4\r\n", "$-1\r\n", "$01\r\n", "$+1\r\n", "$536870913\r\n",
	"$18446744073709551617\r\n", "9223372036854775807\r\n", "2147483648\r\n", "0", "1", "-", "+",
	"PING\r\n", "PING\n", "ECHO ", "Host: x\n", "word", "\r", "\n", "\r\n", " ", "\t", "\v", "\f", "\x00", "\xff",
	"\"", "'", "\\", "\\x41", "\\n", "\"q u\"", "'q u'", strings.Repeat("z", 64),
}

// randomFrames strings fragments of requests together.
func randomFrames(rng *rand.Rand) (in []byte) {
	for range 1 + rng.IntN(12) {
		if rng.IntN(3) == 0 {
			in = append(in, "*2\r\n$4\r\nECHO\r\n$2\r\nhi\r\n"...)
		}
		in = append(in, frameFragments[rng.IntN(len(frameFragments))]...)
	}
	return in
}

// dumbParser parses a whole stream the simple way, written from Redis' rules.
type dumbParser struct {
	RequestLimits
	in    []byte
	at    int
	trace []string
}

// dumbFrames returns the trace that the scanner must leave of in.
func dumbFrames(in []byte, l RequestLimits) []string {
	d := &dumbParser{RequestLimits: l, in: in}
	for d.at < len(in) && d.frame() {
	}
	return d.trace
}

func (d *dumbParser) say(at int, format string, args ...any) bool {
	step := fmt.Sprintf(format, args...)
	event, rest, found := strings.Cut(step, " ")
	if step = fmt.Sprintf("%s@%d", event, at); found {
		step += " " + rest
	}
	d.trace = append(d.trace, step)
	return event != "error"
}

// frame parses one frame, if it is whole and well-formed.
func (d *dumbParser) frame() bool {
	if d.in[d.at] != '*' {
		line, ok := d.line('\n', 0, "too big inline request")
		return ok && d.inline(line)
	}
	line, ok := d.line('\r', 1, "too big mbulk count string")
	if !ok {
		return false
	}
	count, ok := dumbNumber(line[1:])
	switch {
	case !ok || count > math.MaxInt32 || count > int64(d.MaxArgs) && !d.unauthenticated:
		return d.say(d.at, "error Protocol error: invalid multibulk length")
	case count > int64(d.MaxArgs):
		return d.say(d.at, "error Protocol error: unauthenticated multibulk length")
	case count <= 0:
		return d.say(d.at, "empty")
	}
	for i := range count {
		if !d.bulk(i == 0) {
			return false
		}
	}
	return d.say(d.at, "end")
}

// line takes a line with the bytes behind its end.
func (d *dumbParser) line(end byte, behind int, tooLong string) (line []byte, ok bool) {
	rest := d.in[d.at:]
	visible, _, _ := bytes.Cut(rest, []byte{0})
	i := bytes.IndexByte(visible, end)
	if i < 0 && len(rest) > d.MaxInline || i > d.MaxInline {
		return nil, d.say(d.at+d.MaxInline+1, "error Protocol error: %s", tooLong)
	}
	if i < 0 || i+behind >= len(rest) {
		return nil, false
	}
	d.at += i + 1 + behind
	return rest[:i], true
}

func (d *dumbParser) inline(line []byte) bool {
	args, ok := dumbSplitInline(bytes.TrimSuffix(line, []byte("\r")))
	if !ok {
		return d.say(d.at, "error Protocol error: unbalanced quotes in request")
	}
	if len(args) == 0 {
		return d.say(d.at, "empty")
	}
	size := len(args[0])
	return d.name(d.at, []byte(args[0])[:min(size, 64)], size, fmt.Sprintf(" inline %q", args)) && d.say(d.at, "end")
}

func (d *dumbParser) bulk(first bool) bool {
	line, ok := d.line('\r', 1, "too big bulk count string")
	if !ok {
		return false
	}
	if !bytes.HasPrefix(line, []byte("$")) {
		got := append(line, '\r')[:1]
		return d.say(d.at, "error Protocol error: expected '$', got '%s'", strings.NewReplacer("\r", " ", "\n", " ").Replace(string(got)))
	}
	size, ok := dumbNumber(line[1:])
	switch {
	case !ok || size < 0 || size > 512<<20 || size > d.MaxBulk && !d.unauthenticated:
		return d.say(d.at, "error Protocol error: invalid bulk length")
	case size > d.MaxBulk:
		return d.say(d.at, "error Protocol error: unauthenticated bulk length")
	}
	rest, kept := d.in[d.at:], int(min(size, 64))
	if first && len(rest) >= max(kept, 1) && !d.name(d.at+kept, rest[:kept], int(size), "") {
		return false
	}
	d.at += int(size) + 2
	return len(rest) >= int(size)+2
}

// name tells of a name of size bytes, the first of which are kept.
func (d *dumbParser) name(at int, kept []byte, size int, inline string) bool {
	if dumbHTTP.Match(kept) {
		return d.say(at, "error %v", errCrossProtocol)
	}
	more := ""
	if size > len(kept) {
		more = "…"
	}
	return d.say(at, "name %q%s%s", kept, more, inline)
}

var (
	dumbHTTP   = regexp.MustCompile(`\A([pP][oO][sS][tT]|[hH][oO][sS][tT]:)(\x00|\z)`)
	dumbDigits = regexp.MustCompile(`\A(0|-?[1-9][0-9]*)\z`)
)

func dumbNumber(b []byte) (number int64, ok bool) {
	number, err := strconv.ParseInt(string(b), 10, 64)
	return number, err == nil && dumbDigits.Match(b)
}

// The scanner takes for a frame what redis-server takes for one, and refuses the rest
// with the same words.
func TestFrameScannerAgainstRedis(t *testing.T) {
	open, closed := startFrameRedis(t), startFrameRedis(t, "--requirepass", "secret")
	for _, example := range frameExamples {
		compareFrames(t, open, DefaultRequestLimits(), example.in)
	}
	for _, example := range unauthenticatedExamples {
		compareFrames(t, closed, UnauthenticatedLimits(), example.in)
	}
	for seed := range uint64(1000) {
		in := string(randomFrames(rand.New(rand.NewPCG(3, seed))))
		compareFrames(t, open, DefaultRequestLimits(), in)
		compareFrames(t, closed, UnauthenticatedLimits(), in)
	}
}

// compareFrames compares the number of commands, and the protocol error behind them.
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
		want = want[:min(len(replies), len(want))] // Redis closes without having written what is due
	}
	if !slices.Equal(replies, want) {
		t.Errorf("%.200q:\nredis %q\n want %q", in, replies, want)
	}
}
