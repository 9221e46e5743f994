package program

import (
	"strings"
	"testing"

	"redlock-proxy/quorum"
)

// newTaggedFixture returns a fixture in which the key k@t is in the cell of the tag t.
func newTaggedFixture(t *testing.T) *fixture {
	b := newFixture(t)
	b.engine.KeyOnMasters = func(db int, key string) quorum.Key {
		_, tag, _ := strings.Cut(key, "@")
		return quorum.Key{DB: db, Name: key, Tag: tag}
	}
	return b
}

// TestSameCell checks that one ballot changes keys of one cell, with any dependencies. Keys of
// several cells have the usual limits.
func TestSameCell(t *testing.T) {
	const refusalPrefix = "ERR lock keys '"
	for _, test := range []struct {
		name   string
		lines  []string
		reply  string
		rounds string
	}{
		{"two are replaced", []string{"SET k1 a", "SET a@k1 b"}, "OK", "read 0/k1 0/a@k1;update 0/k1 0/a@k1"},
		{"one under the condition of another", []string{"GET k1", "SET a@k1 b"}, "OK",
			"read 0/k1 0/a@k1;update 0/k1 0/a@k1"},
		{"one is moved", []string{"RENAME k1 a@k1"}, "OK", "read 0/k1 0/a@k1;update 0/k1 0/a@k1"},
		{"two are removed", []string{"DEL k1 b@k1"}, "2", "read 0/k1 0/b@k1;update 0/k1 0/b@k1"},
		{"one with a tag", []string{"SET a@k1 b"}, "OK", "read 0/a@k1;update 0/a@k1"},
		{"one without", []string{"APPEND k1 b"}, "2", "read 0/k1;update 0/k1"},
		{"nothing is changed", []string{"EXISTS k1 b@k1"}, "2", "read 0/k1 0/b@k1"},
		{"the other is of another tag", []string{"GET k2", "SET a@k1 b"}, refusalPrefix, "read 0/k2 0/a@k1"},
		{"two of several tags are taken", []string{"SETNX a@k1 b", "SETNX a@k2 b"}, refusalPrefix, "read 0/a@k1 0/a@k2"},
		{"two of several tags are removed", []string{"DEL k1 b@k1 k2"}, "3",
			"read 0/k1 0/b@k1 0/k2;release 0/k1 x;release 0/b@k1 y;release 0/k2 z"},
	} {
		b := newTaggedFixture(t)
		b.run(programOf(nil, "MSET k1 x b@k1 y"))
		b.register.Put("k2", "z", -1)
		b.register.Rounds = nil
		if got := b.run(programOf(nil, test.lines...)); got != test.reply &&
			(test.reply != refusalPrefix || !strings.HasPrefix(got, refusalPrefix)) {
			t.Errorf("%s: %s, want %s", test.name, got, test.reply)
		}
		b.checkRounds(splitRounds(test.rounds)...)
		if t.Failed() {
			t.Fatal(test.name)
		}
	}
}

// TestCrossCellError checks that a refusal names two keys of different cells, because two keys of
// one cell would explain nothing.
func TestCrossCellError(t *testing.T) {
	for _, test := range []struct {
		name     string
		lines    []string
		wantKeys string
	}{
		{"all are replaced", []string{"MSET k1 a b@k1 b k2 c"}, "'k1' and 'k2'"},
		{"all are taken", []string{"MSETNX a@k1 a c@k1 c a@k2 b"}, "'a@k1' and 'a@k2'"},
		{"one depends on the others", []string{"GET b@k1", "GET k2", "SET k1 a"}, "'k1' and 'k2'"},
	} {
		b := newTaggedFixture(t)
		b.run(programOf(nil, "MSET k1 x b@k1 y"))
		b.register.Put("k2", "z", -1)
		want := "ERR lock keys " + test.wantKeys + " cannot be changed together: " + severalKeysCause
		if got := b.run(programOf(nil, test.lines...)); got != want {
			t.Errorf("%s: %s, want %s", test.name, got, want)
		}
	}
}

// TestSameCellBallotValues checks that the program runs on the values that the ballot finds.
func TestSameCellBallotValues(t *testing.T) {
	b := newTaggedFixture(t)
	b.run(programOf(nil, "MSET k1 x b@k1 y"))
	b.register.ConcurrentChange = func() { b.register.Put("k1", "other", -1) }
	b.checkReply("RENAMENX k1 a@k1", "1")
	b.checkReply("GET a@k1", `"other"`)
	b.register.ConcurrentChange = func() { b.register.Remove("k1") }
	b.run(programOf(nil, "SET k1 x"))
	b.register.ConcurrentChange = func() { b.register.Remove("k1") }
	b.checkReply("RENAME k1 c@k1", "ERR no such key")
	b.checkReply("GET c@k1", "(nil)")
}
