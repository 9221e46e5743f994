package resp

import (
	"errors"
	"reflect"
	"strings"
	"testing"
)

// TestSkip: if the limits allow it, a string that exceeds them is discarded, and the rest of the
// reply is read.
func TestSkip(t *testing.T) {
	long, short := "$1000\r\n"+strings.Repeat("x", 1000)+"\r\n", "$2\r\nab\r\n"
	read := strings.Repeat("x", 1000)
	for _, test := range []struct {
		what   string
		text   string
		skip   int
		others int64 // the memory that other readers leave
		want   any   // nil: a *ProtocolError
	}{
		{"there is room", "*2\r\n" + long + short, 100, 5000, []any{read, "ab"}},
		{"no room for the second", "*3\r\n" + long + long + short, 100, 5000, []any{read, Skipped(1000), "ab"}},
		{"no room beside others", "*2\r\n" + long + short, 100, 999, []any{Skipped(1000), "ab"}},
		{"a short one is not read over", "*2\r\n" + long + short, 100, 1, nil},
		{"nothing may be read over", "*2\r\n" + long + long, 0, 5000, nil},
		{"nothing is that long", "*2\r\n" + long + "$1001\r\n", 100, 5000, nil},
		{"without an end", "*2\r\n" + long + "$1000\r\n" + read + "xx", 100, 5000, nil},
	} {
		limits := narrow()
		limits.Skip, limits.Shared = test.skip, NewAllowance(test.others)
		got, err := readAll(strings.NewReader(test.text), limits)
		var wrong *ProtocolError
		switch {
		case test.want == nil && !errors.As(err, &wrong):
			t.Errorf("%s: got %v, %v", test.what, got, err)
		case test.want != nil && (len(got) != 1 || !reflect.DeepEqual(got[0], test.want)):
			t.Errorf("%s: got %.80v, %v", test.what, got, err)
		}
	}
}

// TestSkipIsBounded: a server cannot make a reader discard bytes forever.
func TestSkipIsBounded(t *testing.T) {
	limits := narrow()
	limits.Skip, limits.Elements = 1, 1<<20
	reply := "*1000000\r\n" + strings.Repeat("$1000\r\n"+strings.Repeat("x", 1000)+"\r\n", skipFactor*limits.Total/1000+3)
	var wrong *ProtocolError
	if got, err := readAll(strings.NewReader(reply), limits); !errors.As(err, &wrong) {
		t.Errorf("got %d replies, %v", len(got), err)
	}
}
