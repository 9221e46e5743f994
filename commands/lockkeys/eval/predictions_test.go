package eval

import (
	"sync/atomic"
	"testing"

	"redlock-proxy/commands/lockkeys/keyspace"
)

// nobodys is the value of a key in which this proxy has put nothing.
func nobodys(string) (string, bool) { return "", false }

// What a script was found to do is the guess for its next call.
func TestPredictions(t *testing.T) {
	memos := map[string]*atomic.Int64{"a": {}, "b": {}, "new": {}}
	learn(memos["a"], []keyspace.Edit{{Key: "k", Was: keyspace.Entry{Present: true, Value: "y"}}}, []string{"x", "y"})
	learn(memos["b"], []keyspace.Edit{{Key: "k"}}, []string{"x"})
	for sha, want := range map[string]string{"a": "y,", "b": ",", "new": "x,,"} {
		got := ""
		for _, g := range guesses(memos[sha], []string{"k"}, []string{"x", "y"}, nobodys) {
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
