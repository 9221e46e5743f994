package master

import (
	"fmt"
	"strings"
	"testing"

	"redlock-proxy/quorum/cell"
)

// What is owed is bounded, and each is owed once.
func TestOwedIsBounded(t *testing.T) {
	w := owed{all: map[owedRemoval]struct{}{}}
	remove := func(name string) *op {
		return tellOp(0, cell.Remove{Name: name, How: cell.Undo}, true)
	}
	for range 2 {
		for i := range maxOwed {
			if !w.add(remove(fmt.Sprint(i))) {
				t.Fatalf("no room for %d", i)
			}
		}
	}
	if len(w.all) != maxOwed || w.add(remove("more")) {
		t.Errorf("%d are owed", len(w.all))
	}
	if n := len(w.take(maxBatch)); n != maxBatch || len(w.all) != maxOwed-maxBatch {
		t.Errorf("took %d of them, %d are left", n, len(w.all))
	}
	w.take(maxOwed)
	long := strings.Repeat("k", 1<<20)
	for i := range maxOwedBytes>>20 - 1 {
		if !w.add(remove(long + fmt.Sprint(i))) {
			t.Fatalf("no room for the long key %d", i)
		}
	}
	if w.add(remove(long + "more")) {
		t.Error("long keys are not bounded")
	}
}
