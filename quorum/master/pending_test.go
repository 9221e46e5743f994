package master

import (
	"fmt"
	"strings"
	"testing"

	"redlock-proxy/quorum/cell"
)

// TestPendingRemovals checks that pendingRemovals limits the removals, and stores each removal
// once.
func TestPendingRemovals(t *testing.T) {
	w := pendingRemovals{removals: map[pendingRemoval]struct{}{}}
	remove := func(name string) *op {
		return noReplyOp(0, cell.Remove{Name: name, Mode: cell.Undo}, true)
	}
	for range 2 {
		for i := range maxPending {
			if !w.add(remove(fmt.Sprint(i))) {
				t.Fatalf("no room for %d", i)
			}
		}
	}
	if len(w.removals) != maxPending || w.add(remove("more")) {
		t.Errorf("%d are pending", len(w.removals))
	}
	if n := len(w.take(maxBatch)); n != maxBatch || len(w.removals) != maxPending-maxBatch {
		t.Errorf("took %d, %d are left", n, len(w.removals))
	}
	w.take(maxPending)
	long := strings.Repeat("k", 1<<20)
	for i := range maxPendingBytes>>20 - 1 {
		if !w.add(remove(long + fmt.Sprint(i))) {
			t.Fatalf("no room for the long key %d", i)
		}
	}
	if w.add(remove(long + "more")) {
		t.Error("long keys are not bounded")
	}
}
