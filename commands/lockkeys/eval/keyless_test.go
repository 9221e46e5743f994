package eval

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"redlock-proxy/commands/catalog/keys"
	"redlock-proxy/commands/command"
	"redlock-proxy/commands/lockkeys/keyspace"
	"redlock-proxy/commands/lockkeys/program"
	"redlock-proxy/commands/rights"
)

// runListing runs a command that lists lock keys, on a snapshot of the given names. It returns the
// reply or the refusal, and the charge in bytes.
func runListing(t *testing.T, names []string, words ...string) (reply string, charge int) {
	t.Helper()
	snapshot := keyspace.NewSnapshot(time.Now())
	for _, name := range names {
		snapshot.Put(name, keyspace.Entry{Present: true, RemainingTTL: keyspace.NoExpiry})
	}
	calls := scriptCalls{
		lockKeys: keys.NewPatterns("lock:*"), snapshot: snapshot, rights: (&rights.Client{}).NewPermissions(),
		listedGlobs: map[string]bool{words[len(words)-1]: true}, listedKeys: (&command.Client{}).ListedKeys,
	}
	got, err := calls.do(words, func(bytes int) { charge += bytes })
	if refusal, ok := errors.AsType[*program.Refusal](err); ok {
		return refusal.Text, charge
	}
	if err != nil {
		t.Fatal(err)
	}
	found := got.Elems
	if words[0] == "scan" {
		found = got.Elems[1].Elems
	}
	for _, e := range found {
		reply += e.Str
	}
	return reply, charge
}

// TestListingTime checks that KEYS and SCAN in a script take linear time for a pattern that
// almost matches at each position. Both commands charge the run for the pattern and the names, and
// refuse a pattern that needs too many comparisons.
func TestListingTime(t *testing.T) {
	const size = 1 << 20
	long := "lock:" + strings.Repeat("a", size)
	for _, command := range [][]string{{"keys"}, {"scan", "0", "match"}} {
		for pattern, want := range map[string]string{
			"lock:*": "lock:b" + long, "lock:?": "lock:b",
			"lock:*" + long[5:5+size/2] + "b":             "", // backtracking would take minutes
			"lock:*" + long[5:5+size/2] + "b*":            "",
			"lock:*" + strings.Repeat("?", size/2) + "b*": fmt.Sprint("ERR ", keys.ErrTooComplex),
		} {
			got, charge := runListing(t, []string{long, "lock:b"}, append(command, pattern)...)
			if got != want && want != "lock:b"+long || len(got) != len(want) {
				t.Errorf("%s %.20q: %.100q", command[0], pattern, got)
			}
			if charge < size+len(pattern) {
				t.Errorf("%s %.20q: charged for %d bytes", command[0], pattern, charge)
			}
		}
	}
}
