package resp

import (
	"errors"
	"reflect"
	"strings"
	"testing"
)

// TestSkip checks that a reader discards a string that exceeds the limits if Limits.Skip allows it,
// and then reads the rest of the reply.
func TestSkip(t *testing.T) {
	long, short := "$1000\r\n"+strings.Repeat("x", 1000)+"\r\n", "$2\r\nab\r\n"
	read := strings.Repeat("x", 1000)
	for _, test := range []struct {
		title     string
		text      string
		skip      int
		available int64 // bytes of memory that other readers have not reserved
		want      any   // nil: a *ProtocolError
	}{
		{"within the limits", "*2\r\n" + long + short, 100, 5000, []any{read, "ab"}},
		{"the second exceeds Total", "*3\r\n" + long + long + short, 100, 5000, []any{read, SkippedSize(1000), "ab"}},
		{"other readers use the memory", "*2\r\n" + long + short, 100, 999, []any{SkippedSize(1000), "ab"}},
		{"a short string is not skipped", "*2\r\n" + long + short, 100, 1, nil},
		{"Skip is 0", "*2\r\n" + long + long, 0, 5000, nil},
		{"a string exceeds Bulk", "*2\r\n" + long + "$1001\r\n", 100, 5000, nil},
		{"without an end", "*2\r\n" + long + "$1000\r\n" + read + "xx", 100, 5000, nil},
	} {
		limits := smallLimits()
		limits.Skip, limits.SharedAllowance = test.skip, NewAllowance(test.available)
		got, err := readAll(strings.NewReader(test.text), limits)
		var protocolErr *ProtocolError
		switch {
		case test.want == nil && !errors.As(err, &protocolErr):
			t.Errorf("%s: got %v, %v", test.title, got, err)
		case test.want != nil && (len(got) != 1 || !reflect.DeepEqual(got[0], test.want)):
			t.Errorf("%s: got %.80v, %v", test.title, got, err)
		}
	}
}

// TestSkipIsBounded checks that a server cannot make a reader discard bytes forever.
func TestSkipIsBounded(t *testing.T) {
	limits := smallLimits()
	limits.Skip, limits.Elements = 1, 1<<20
	reply := "*1000000\r\n" + strings.Repeat("$1000\r\n"+strings.Repeat("x", 1000)+"\r\n", skipFactor*limits.Total/1000+3)
	var protocolErr *ProtocolError
	if got, err := readAll(strings.NewReader(reply), limits); !errors.As(err, &protocolErr) {
		t.Errorf("got %d replies, %v", len(got), err)
	}
}
