package command

import (
	"fmt"
	"strings"
	"testing"

	"redlock-proxy/commands/catalog/keys"
)

// TestChangedKeys checks the limit in bytes, that a key counts once, and that a new set begins
// after StartNewSet.
func TestChangedKeys(t *testing.T) {
	var changedKeys ChangedKeys
	add := func(key string) {
		changedKeys.Add(0, [][]byte{[]byte("del"), []byte(key)}, keys.Places{keys.Span{First: 1, Last: 1, Step: 1}})
	}
	want := func(n int, complete bool) {
		t.Helper()
		if changed, gotComplete := changedKeys.Keys(); len(changed) != n || gotComplete != complete {
			t.Errorf("%d keys, known %v, want %d, %v", len(changed), gotComplete, n, complete)
		}
	}
	want(0, true)
	const count = 100
	for i := range count {
		add(fmt.Sprint(i))
	}
	want(count, true)
	if c := (Client{ChangedKeys: changedKeys}); c.Size() < count*changedKeyOverhead {
		t.Errorf("%d bytes are counted", c.Size())
	}
	changedKeys.StartNewSet()
	want(count, true)
	add("next")
	want(1, true)
	for range 2 * maxChangedKeysSize / changedKeyOverhead {
		add("next")
	}
	want(1, true)
	add(strings.Repeat("k", maxChangedKeysSize))
	want(0, false)
	add("other")
	want(0, false)
	changedKeys.StartNewSet()
	add("again")
	want(1, true)
}
