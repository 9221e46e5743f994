//go:build unix

package redistest

import (
	"net"
	"strconv"
	"testing"
)

// TestReservedPort checks that no other caller gets a reserved port, even if no server listens on
// it.
func TestReservedPort(t *testing.T) {
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
