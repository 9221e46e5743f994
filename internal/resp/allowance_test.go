package resp

import (
	"errors"
	"strings"
	"testing"
)

// TestAllowanceOfSeveralReaders checks that readers that share an allowance together hold at most
// the bytes of the allowance. After their replies have ended, the whole allowance is free.
func TestAllowanceOfSeveralReaders(t *testing.T) {
	const size, fittingCount = 1 << 20, 8
	allowance := NewAllowance(fittingCount * size)
	reply := "$1048576\r\n" + strings.Repeat("x", size) + "\r\n"
	readers := make([]*Reader, 2*fittingCount)
	for i := range readers {
		limits := ClientLimits()
		limits.SharedAllowance = allowance
		readers[i] = NewReader(strings.NewReader(reply+reply), limits)
		readers[i].Begin()
		var protocolErr *ProtocolError
		if _, err := readers[i].ReadValue(); (i < fittingCount) != (err == nil) || i >= fittingCount && !errors.As(err, &protocolErr) {
			t.Fatalf("reader %d: %v", i, err)
		}
	}
	for _, r := range readers {
		r.End()
	}
	if remaining := allowance.remaining.Load(); remaining != fittingCount*size {
		t.Errorf("%d of %d bytes are free", remaining, fittingCount*size)
	}
	if _, err := readers[0].ReadValue(); err != nil {
		t.Error(err)
	}
	if readers[0].End(); cap(readers[0].buf) > maxKeptBufferSize {
		t.Errorf("a buffer of %d bytes is kept", cap(readers[0].buf))
	}
}
