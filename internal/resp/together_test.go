package resp

import (
	"errors"
	"strings"
	"testing"
)

// TestAllowanceOfSeveralReaders: readers that share an allowance together hold at most that many
// bytes, and none after their replies have ended.
func TestAllowanceOfSeveralReaders(t *testing.T) {
	const size, fit = 1 << 20, 8
	all := NewAllowance(fit * size)
	reply := "$1048576\r\n" + strings.Repeat("x", size) + "\r\n"
	readers := make([]*Reader, 2*fit)
	for i := range readers {
		limits := Client()
		limits.Shared = all
		readers[i] = NewReader(strings.NewReader(reply+reply), limits)
		readers[i].Begin()
		var wrong *ProtocolError
		if _, err := readers[i].Value(); (i < fit) != (err == nil) || i >= fit && !errors.As(err, &wrong) {
			t.Fatalf("reader %d: %v", i, err)
		}
	}
	for _, r := range readers {
		r.End()
	}
	if left := all.left.Load(); left != fit*size {
		t.Errorf("%d of %d bytes are free", left, fit*size)
	}
	if _, err := readers[0].Value(); err != nil {
		t.Error(err)
	}
	if readers[0].End(); cap(readers[0].buf) > keptBuffer {
		t.Errorf("a buffer of %d bytes is kept", cap(readers[0].buf))
	}
}
