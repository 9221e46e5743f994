package eval

import (
	"sync/atomic"
	"testing"

	"redlock-proxy/commands/lockkeys/keyspace"
)

// nothingWritten is a lastWritten function for a proxy that has written no value.
func nothingWritten(string) (string, bool) { return "", false }

// TestGuesses checks that the guesses for a script follow from its last change.
func TestGuesses(t *testing.T) {
	memos := map[string]*atomic.Int64{"a": {}, "b": {}, "new": {}}
	updateMemo(memos["a"], []keyspace.Edit{{Key: "k", Before: keyspace.Entry{Present: true, Value: "y"}}},
		[]string{"x", "y"})
	updateMemo(memos["b"], []keyspace.Edit{{Key: "k"}}, []string{"x"})
	for sha, want := range map[string]string{"a": "y,", "b": ",", "new": "x,,"} {
		got := ""
		for _, g := range guessesFor(memos[sha], []string{"k"}, []string{"x", "y"}, nothingWritten) {
			got += g["k"].Value + ","
		}
		if sha == "a" {
			want += ","
		}
		if got != want {
			t.Errorf("%s: %q, want %q", sha, got, want)
		}
	}
}
