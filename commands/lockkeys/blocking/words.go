package blocking

import (
	"time"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/lockkeys/keyspace"
	"redlock-proxy/commands/lockkeys/program"
	"redlock-proxy/quorum"
)

// longestWait is for how long a client waits at the most that names an end; longer ones have none.
const longestWait = 100 * 365 * 24 * time.Hour

// request is what a client waits for.
type request struct {
	words []string
	name  string
	// keys are distinct, in the order named.
	keys []string
	// target is the key to which what is taken is moved, if that is another one; else it is empty.
	target string
	// kind is what they have to hold, as TYPE returns it.
	kind string
	// wait is for how long; below zero: without an end.
	wait time.Duration
}

// parse reads the words of a command that fits. failed is the reply where nothing is waited for.
func parse(words []string, now time.Time) (r request, failed *keyspace.Reply) {
	keys := keyspace.Keys(words)
	reply, err := program.Absent(keys).Space(now).Do(words)
	if reply.Kind == keyspace.Error || err != nil {
		return r, &reply
	}
	r = request{words: words, name: syntax.Lower(words[0]), keys: syntax.Distinct(keys), kind: "list", wait: keyspace.Patience(words)}
	if r.name[1] == 'z' {
		r.kind = "zset"
	}
	if r.wait == 0 || r.wait > longestWait {
		r.wait = quorum.Forever
	}
	if r.moves() && len(r.keys) > 1 {
		r.keys, r.target = r.keys[:1], r.keys[1]
	}
	if why := program.TooManyKeys(len(r.keys)); why != "" {
		failed = new(keyspace.Fail(why))
	}
	return r, failed
}

// moves is true of a command that also puts what it takes somewhere.
func (r request) moves() bool { return r.name == "blmove" || r.name == "brpoplpush" }

// of is the command on one of its keys alone.
func (r request) of(key string) []string {
	if r.moves() {
		return r.words
	}
	return []string{r.name, key, r.words[len(r.words)-1]}
}

// holding is what a key holds by itself: whether that is what is waited for, and, where it is
// something else, the error reply.
func (r request) holding(key string, look quorum.Look, now time.Time) (has bool, failed *keyspace.Reply) {
	words := r.of(key)
	if r.target != "" {
		words = []string{"blpop", key, "0"}
	}
	reply, err := program.Guess{key: program.EntryOf(look)}.Space(now).Do(words)
	switch {
	case err != nil:
		return true, nil // it takes more than a look to tell
	case reply.Kind == keyspace.Error:
		return false, &reply
	}
	return !isNothing(reply), nil
}

// isNothing is true of the reply of a command that found nothing.
func isNothing(reply keyspace.Reply) bool {
	return reply.Kind == keyspace.Nil || reply.Kind == keyspace.NilArray
}
