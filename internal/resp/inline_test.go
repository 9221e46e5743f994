package resp

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tidwall/redcon"

	"redlock-proxy/internal/redistest"
)

func TestSplitInline(t *testing.T) {
	const unbalanced = "unbalanced"
	tests := []struct{ line, want string }{
		{``, `[]`},
		{"  \t ", `[]`},
		{`PING`, `["PING"]`},
		{`  SET  k	v  `, `["SET" "k" "v"]`},
		{"a\nb\rc", `["a" "b" "c"]`},
		{"a\vb\fc", `["a\vb\fc"]`},
		{"\va \fb", `["a" "b"]`},
		{"\"a\"\v'b'\f", `["a" "b"]`},
		{"a\x00 b", `["a"]`},
		{"\"a\x00\"", unbalanced},
		{"a\xa0b \x85", `["a\xa0b" "\x85"]`},

		{`""`, `[""]`},
		{`'' ""`, `["" ""]`},
		{`"a b" 'c d'`, `["a b" "c d"]`},
		{`"it's" 'say "x"'`, `["it's" "say \"x\""]`},
		{`a"b c"`, `["ab c"]`},
		{`a'b c' d`, `["ab c" "d"]`},

		{`"\n\r\t\b\a"`, `["\n\r\t\b\a"]`},
		{`"\x41\xfF\x00"`, `["A\xff\x00"]`},
		{`"\x4" "\x4g" "\xg4" "\x"`, `["x4" "x4g" "xg4" "x"]`},
		{`"\\ \" \' \0 \N"`, `["\\ \" ' 0 N"]`},
		{`'\n \x41 \\ \" \''`, `["\\n \\x41 \\\\ \\\" '"]`},
		{`\n \x41 \" "`, `["\\n" "\\x41" "\\ "]`},
		{`\n \x41 \\`, `["\\n" "\\x41" "\\\\"]`},

		{`"`, unbalanced},
		{`'`, unbalanced},
		{`"a`, unbalanced},
		{`'a`, unbalanced},
		{`"a\`, unbalanced},
		{`"a\"`, unbalanced},
		{`'a\'`, unbalanced},
		{`"a"b`, unbalanced},
		{`'a'b`, unbalanced},
		{`"a""b"`, unbalanced},
		{`'a''b'`, unbalanced},
		{`"a'`, unbalanced},
		{`good "bad`, unbalanced},
	}
	for _, tt := range tests {
		got := unbalanced
		if args, ok := splitInline([]byte(tt.line)); ok {
			got = fmt.Sprintf("%q", args)
		}
		if got != tt.want {
			t.Errorf("%q: got %s, want %s", tt.line, got, tt.want)
		}
	}
}

// TestSplitInlineMemory checks that the arguments do not share memory with the line, and that
// appending to one argument does not change another.
func TestSplitInlineMemory(t *testing.T) {
	line := []byte(`one "two" three`)
	args, _ := splitInline(line)
	clear(line)
	_ = append(args[0], "xxx"...)
	if got := fmt.Sprintf("%q", args); got != `["one" "two" "three"]` {
		t.Errorf("got %s", got)
	}
}

// FuzzInlineSplit checks that splitInline agrees with a simple reference.
func FuzzInlineSplit(f *testing.F) {
	f.Add([]byte(`SET "k \x41" 'it\'s' a"b"`))
	f.Fuzz(checkInlineSplit)
}

func TestInlineSplitRandom(t *testing.T) {
	for seed := range uint64(10000) {
		checkInlineSplit(t, randomInline(rand.New(rand.NewPCG(4, seed))))
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func checkInlineSplit(t *testing.T, line []byte) {
	args, ok := splitInline(line)
	want, wantOK := referenceSplitInline(line)
	if ok != wantOK || fmt.Sprintf("%q", args) != fmt.Sprintf("%q", want) {
		t.Errorf("%q: got %q, %v, want %q, %v", line, args, ok, want, wantOK)
	}
}

var inlineFragments = []string{
	" ", "\t", "\v", "\f", "\r", "\"", "\"", "'", "'", "\\", "\\n", "\\x", "\\x4", "\\xfe", "\\'", "\\\"", "a", "bc",
	"4", "\xff", "\\\\", "\" \"",
}

// randomInline concatenates fragments of a line, without an end of line.
func randomInline(rng *rand.Rand) (line []byte) {
	for range rng.IntN(16) {
		line = append(line, inlineFragments[rng.IntN(len(inlineFragments))]...)
	}
	return line
}

// referenceSplitInline splits like splitInline, one byte at a time.
func referenceSplitInline(line []byte) (args []string, ok bool) {
	const gap, word, quoted = 0, 1, 2
	state, quote, arg := gap, byte(0), ""
	text, _, _ := strings.Cut(string(line), "\x00")
	for text != "" {
		c, size := text[0], 1
		switch {
		case state == gap && strings.IndexByte(" \t\n\v\f\r", c) >= 0:
		case state == word && strings.IndexByte(" \t\n\r", c) >= 0:
			args, arg, state = append(args, arg), "", gap
		case state < quoted && (c == '"' || c == '\''):
			state, quote = quoted, c
		case state == quoted && c == quote:
			if len(text) > 1 && strings.IndexByte(" \t\n\v\f\r", text[1]) < 0 {
				return nil, false
			}
			args, arg, state = append(args, arg), "", gap
		case state == quoted && c == '\\':
			c, size = referenceEscape(text, quote)
			arg += string([]byte{c})
		default:
			state, arg = max(state, word), arg+string([]byte{c})
		}
		text = text[size:]
	}
	switch state {
	case quoted:
		return nil, false
	case word:
		args = append(args, arg)
	}
	return args, true
}

// referenceEscape decodes the escape at the beginning of text, which is inside quotes.
func referenceEscape(text string, quote byte) (c byte, size int) {
	if strings.HasPrefix(text, `\'`) {
		return '\'', 2
	}
	if quote == '\'' || len(text) == 1 {
		return '\\', 1
	}
	if text[1] == 'x' && len(text) >= 4 {
		if n, err := strconv.ParseUint(text[2:4], 16, 8); err == nil {
			return byte(n), 4
		}
	}
	if i := strings.IndexByte("nrtba", text[1]); i >= 0 {
		return "\n\r\t\b\a"[i], 2
	}
	return text[1], 2
}

// TestSplitInlineAgainstRedis checks that splitInline returns the arguments that a script in Redis
// returns for the same line.
func TestSplitInlineAgainstRedis(t *testing.T) {
	socket := startFrameRedis(t)
	for seed := range uint64(1000) {
		line := randomInline(rand.New(rand.NewPCG(5, seed)))
		var want []string
		if args, ok := splitInline(line); ok {
			for _, arg := range args {
				want = append(want, string(arg))
			}
		} else {
			want = []string{"ERR Protocol error: unbalanced quotes in request"}
		}
		replies := askFrameRedis(t, socket, `EVAL "return ARGV" 0 `+string(line)+"\r\n")
		if got := inlineStrings(replies); !slices.Equal(got, want) {
			t.Errorf("%q: redis %q, want %q", line, got, want)
		}
	}
}

// inlineStrings returns the strings in one reply, an array or an error.
func inlineStrings(replies []string) (strs []string) {
	_, reply := redcon.ReadNextRESP([]byte(strings.Join(replies, "")))
	if reply.Type != redcon.Array {
		return []string{string(reply.Data)}
	}
	reply.ForEach(func(r redcon.RESP) bool {
		strs = append(strs, string(r.Data))
		return true
	})
	return strs
}

// startFrameRedis starts a redis-server for one test and returns its socket.
func startFrameRedis(t *testing.T, args ...string) (socket string) {
	t.Helper()
	return redistest.New(t, redistest.Options{Socket: true, ExtraArgs: args}).Socket()
}

// askFrameRedis sends in and then ends the stream, and returns all replies.
func askFrameRedis(t *testing.T, socket, in string) (replies []string) {
	t.Helper()
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	_, _ = conn.Write([]byte(in)) // Redis may close the connection before it has read all bytes
	_ = conn.CloseWrite()
	answer, err := io.ReadAll(conn)
	if err != nil && !errors.Is(err, syscall.ECONNRESET) {
		t.Fatalf("%.200q: %v", in, err)
	}
	for len(answer) > 0 {
		n, _ := redcon.ReadNextRESP(answer)
		if n == 0 {
			t.Fatalf("%.200q: reply %q", in, answer)
		}
		replies, answer = append(replies, string(answer[:n])), answer[n:]
	}
	return replies
}
