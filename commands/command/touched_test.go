package command

import (
	"fmt"
	"strings"
	"testing"

	"redlock-proxy/commands/catalog/keys"
)

// TestTouched checks the limit in bytes, and that a new set begins after an answered WAIT.
func TestTouched(t *testing.T) {
	var touched Touched
	add := func(key string) {
		touched.Add(0, [][]byte{[]byte("del"), []byte(key)}, keys.Places{keys.Span{First: 1, Last: 1, Step: 1}})
	}
	want := func(n int, known bool) {
		t.Helper()
		if all, knows := touched.Keys(); len(all) != n || knows != known {
			t.Errorf("%d keys, known %v, want %d, %v", len(all), knows, n, known)
		}
	}
	want(0, true)
	const some = 100
	for i := range some {
		add(fmt.Sprint(i))
	}
	want(some, true)
	if c := (Client{Touched: touched}); c.Size() < some*touchedSize {
		t.Errorf("%d bytes are counted", c.Size())
	}
	touched.Settle()
	want(some, true)
	add("next")
	want(1, true)
	add(strings.Repeat("k", maxTouched))
	want(0, false)
	add("other")
	want(0, false)
	touched.Settle()
	add("again")
	want(1, true)
}
