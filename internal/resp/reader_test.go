package resp

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
)

// smallLimits returns small limits that a test can reach.
func smallLimits() Limits { return Limits{Line: 100, Bulk: 1000, Elements: 10, Depth: 2, Total: 1500} }

// hostileReplies returns replies that make a reader panic or exhaust memory if it trusts their
// lengths, and replies that are only invalid.
func hostileReplies() map[string]string {
	return map[string]string{
		"a string of 2^63-1 bytes":    "$9223372036854775807\r\n",
		"a string of 2^64 bytes":      "$18446744073709551616\r\n",
		"a string of 100 GB":          "$99999999999\r\n",
		"a long string":               "$1001\r\n",
		"a negative length":           "$-2\r\n",
		"a length that is none":       "$1x\r\n",
		"no length":                   "$\r\n",
		"an array of 2^31-1 elements": "*2147483647\r\n",
		"a long array":                "*11\r\n",
		"long arrays in each other":   "*6\r\n*5\r\n",
		"deep arrays":                 "*1\r\n*1\r\n*1\r\n:1\r\n",
		"strings too long together":   "*2\r\n$1000\r\n" + strings.Repeat("x", 1000) + "\r\n$501\r\n",
		"an endless status":           "+" + strings.Repeat("x", 102),
		"an endless error":            "-" + strings.Repeat("x", 102),
		"an endless number":           ":" + strings.Repeat("1", 102),
		"an endless header":           "*" + strings.Repeat("1", 102),
		"a number too large":          ":9223372036854775808\r\n",
		"a number that is none":       ":1.5\r\n",
		"a push":                      ">2147483647\r\n",
		"a set":                       "~2147483647\r\n",
		"a map":                       "%2147483647\r\n",
		"an attribute":                "|1\r\n",
		"a long error":                "!2147483647\r\n",
		"a verbatim text":             "=2147483647\r\n",
		"an empty line":               "\r\n",
		"a newline alone":             "+OK\n",
		"something else":              "HTTP/1.1 200 OK\r\n",
	}
}

func readAll(r io.Reader, limits Limits) (values []any, err error) {
	in := NewReader(r, limits)
	for {
		in.Begin()
		value, err := in.ReadValue()
		if err != nil {
			return values, err
		}
		values = append(values, value)
	}
}

func TestReader(t *testing.T) {
	text := "+OK\r\n-ERR no\r\n:-9223372036854775808\r\n:12\r\n$0\r\n\r\n$5\r\na\r\nbc\r\n$-1\r\n*-1\r\n*0\r\n" +
		"*3\r\n$1\r\nx\r\n*2\r\n:1\r\n$-1\r\n-WRONGTYPE x\r\n$1000\r\n" + strings.Repeat("y", 1000) + "\r\n"
	want := []any{
		"OK", Error("ERR no"), int64(-1 << 63), int64(12), "", "a\r\nbc", nil, nil, []any{},
		[]any{"x", []any{int64(1), nil}, Error("WRONGTYPE x")}, strings.Repeat("y", 1000),
	}
	for name, source := range map[string]io.Reader{
		"whole": strings.NewReader(text), "in bytes": iotest.OneByteReader(strings.NewReader(text)),
	} {
		got, err := readAll(source, smallLimits())
		if err != io.EOF || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

// TestReaderRefuses checks that the reader refuses hostile replies.
func TestReaderRefuses(t *testing.T) {
	for name, text := range hostileReplies() {
		for _, before := range []string{"", ":1\r\n"} {
			got, err := readAll(strings.NewReader(before+text), smallLimits())
			if protocolErr := new(ProtocolError); !errors.As(err, &protocolErr) || len(got) != strings.Count(before, ":") {
				t.Errorf("%s: %q, %v", name, got, err)
			}
		}
	}
}

// TestReaderBufferGrowsWithInput checks that a length within the limits takes no memory before its
// bytes arrive.
func TestReaderBufferGrowsWithInput(t *testing.T) {
	in := NewReader(strings.NewReader("$1000000000\r\nabc"), Limits{Line: 100, Bulk: 1 << 30, Elements: 10, Depth: 1,
		Total: 1 << 30})
	if _, err := in.ReadValue(); err != io.EOF || len(in.buf) > maxKeptBufferSize {
		t.Errorf("%v, and it holds %d bytes", err, len(in.buf))
	}
}

// TestReaderFreesLargeBuffer checks that the reader frees the memory of a large reply.
func TestReaderFreesLargeBuffer(t *testing.T) {
	in := NewReader(strings.NewReader("$1000000\r\n"+strings.Repeat("x", 1000000)+"\r\n:1\r\n"), ClientLimits())
	if got, err := in.ReadValue(); err != nil || len(got.(string)) != 1000000 {
		t.Fatal(err)
	}
	if got, err := in.ReadValue(); err != nil || got != int64(1) {
		t.Fatal(got, err)
	}
	if in.Begin(); len(in.buf) > maxKeptBufferSize {
		t.Errorf("it holds %d bytes", len(in.buf))
	}
}

// TestScannerRefuses checks that the scanner refuses the same hostile replies as the reader, and
// does not let all of their bytes pass.
func TestScannerRefuses(t *testing.T) {
	for name, text := range hostileReplies() {
		for _, piece := range []int{1, 3, 1 << 20} {
			s := newLimitScanner(smallLimits())
			passed, err := scanInPieces(s, []byte(text), piece)
			if protocolErr := new(ProtocolError); !errors.As(err, &protocolErr) || passed >= len(text) {
				t.Errorf("%s, in pieces of %d: %d of %d bytes passed, %v", name, piece, passed, len(text), err)
			}
			if n, err := s.scan([]byte("+OK\r\n")); n != 0 || err == nil {
				t.Errorf("%s: it continues with %d bytes, %v", name, n, err)
			}
		}
	}
}

func scanInPieces(s *limitScanner, text []byte, piece int) (passed int, err error) {
	for len(text) > 0 && err == nil {
		part := text[:min(piece, len(text))]
		n, scanErr := s.scan(part)
		passed, err, text = passed+n, scanErr, text[len(part):]
	}
	return passed, err
}

// FuzzReader checks that for any input, the reader ends with an error, and that the scanner and the
// reader refuse the same input.
func FuzzReader(f *testing.F) {
	for _, text := range hostileReplies() {
		f.Add([]byte(text), 3)
	}
	f.Add([]byte("+OK\r\n*2\r\n:1\r\n$3\r\nabc\r\n$-1\r\n"), 2)
	f.Fuzz(func(t *testing.T, text []byte, piece int) {
		limits := smallLimits()
		replies, err := readAll(bytes.NewReader(text), limits)
		var protocolErr *ProtocolError
		_, scanErr := scanInPieces(newLimitScanner(limits), text, max(1, piece))
		if scanErr == nil && errors.As(err, &protocolErr) && !strings.Contains(err.Error(), "without an end") {
			t.Fatalf("%q: the reader says %v, the scanner nothing, after %d replies", text, err, len(replies))
		}
		if scanErr != nil && !errors.As(err, &protocolErr) && err != io.EOF && err != io.ErrUnexpectedEOF {
			t.Fatalf("%q: the scanner says %v, the reader %v", text, scanErr, err)
		}
	})
}

// TestRESP3Reader checks that a RESP3 reader reads RESP3 replies, which a RESP2 reader refuses.
func TestRESP3Reader(t *testing.T) {
	limits := Limits{Line: 100, Bulk: 100, Elements: 8, Depth: 3, Total: 1000}
	for in, want := range map[string]any{
		"%2\r\n+proto\r\n:3\r\n+modules\r\n*0\r\n":     []any{"proto", int64(3), "modules", []any{}},
		">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n": []any{"invalidate", []any{"k"}},
		">2\r\n$10\r\ninvalidate\r\n_\r\n":             []any{"invalidate", nil},
		"_\r\n":                                        nil,
		"=7\r\ntxt:abc\r\n":                            "abc",
		"*2\r\n=4\r\ntxt:\r\n:1\r\n":                   []any{"", int64(1)},
		"%0\r\n":                                       []any{},
		"%1\r\n+flags\r\n~1\r\n+on\r\n":                []any{"flags", []any{"on"}},
	} {
		got, err := NewRESP3Reader(strings.NewReader(in), limits).ReadValue()
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %#v, %v; want %#v", in, got, err, want)
		}
		if got, err := NewReader(strings.NewReader(in), limits).ReadValue(); err == nil {
			t.Errorf("%q: a plain reader reads %#v", in, got)
		}
	}
	for _, in := range []string{
		"%5\r\n", "%-1\r\n", ">-1\r\n", ">9\r\n", "%9223372036854775807\r\n", "*1\r\n>1\r\n:1\r\n", "_x\r\n", "#t\r\n",
		">x\r\n", "~-1\r\n", "~9\r\n", "=3\r\ntxt\r\n", "=4\r\ntxt.\r\n", "=-1\r\n", "=101\r\n",
		"%1\r\n*1\r\n*1\r\n*1\r\n",
	} {
		protocolErr := new(ProtocolError)
		if got, err := NewRESP3Reader(strings.NewReader(in), limits).ReadValue(); !errors.As(err, &protocolErr) {
			t.Errorf("%q: %#v, %v", in, got, err)
		}
	}
}
