//go:build unix

package redistest

import (
	"net"
	"strconv"
	"testing"
)

// TestReserved: a port that somebody has got is nobody else's, also while no server listens there.
func TestReserved(t *testing.T) {
	addr, err := FreeAddr()
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(addr)
	number, _ := strconv.Atoi(port)
	if reserve(number) {
		t.Errorf("%s was given twice", addr)
	}
}
