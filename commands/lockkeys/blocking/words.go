package blocking

import (
	"time"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/lockkeys/keyspace"
	"redlock-proxy/commands/lockkeys/program"
	"redlock-proxy/quorum"
)

// longestWait is the longest timeout. A longer timeout means no timeout.
const longestWait = 100 * 365 * 24 * time.Hour

// request holds a parsed command that waits.
type request struct {
	words []string
	name  string
	// keys holds the distinct keys, in the order of the command.
	keys []string
	// target is the key to which the command moves the element. hasTarget is false if the command
	// moves nothing, or if target is the source. The empty string is the name of a key, too.
	target    string
	hasTarget bool
	// kind is the type that the keys must have, as TYPE returns it.
	kind string
	// wait is the timeout. A negative value means no timeout.
	wait time.Duration
}

// parse parses the words of a command with the right number of words. errReply is the error reply.
func parse(words []string, now time.Time) (r request, errReply *keyspace.Reply) {
	keys := keyspace.Keys(words)
	reply, err := program.GuessAbsent(keys).Snapshot(now).Do(words)
	if reply.Kind == keyspace.Error || err != nil {
		return r, &reply
	}
	r = request{
		words: words, name: syntax.Lower(words[0]), keys: syntax.Distinct(keys), kind: "list",
		wait: keyspace.Timeout(words),
	}
	if r.name[1] == 'z' {
		r.kind = "zset"
	}
	if r.wait == 0 || r.wait > longestWait {
		r.wait = quorum.NoWaitLimit
	}
	if r.moves() && len(r.keys) > 1 {
		r.keys, r.target, r.hasTarget = r.keys[:1], r.keys[1], true
	}
	if refusal := program.TooManyKeys(len(r.keys)); refusal != "" {
		errReply = new(keyspace.ErrorReply(refusal))
	}
	return r, errReply
}

// moves reports whether a command moves the element to another list, or within a list.
func (r request) moves() bool { return r.name == "blmove" || r.name == "brpoplpush" }

// wordsForKey returns the command for only one of its keys.
func (r request) wordsForKey(key string) []string {
	if r.moves() {
		return r.words
	}
	return []string{r.name, key, r.words[len(r.words)-1]}
}

// hasElement reports whether a key has, or may have, an element to take. errReply is the error
// reply if the key has another type.
func (r request) hasElement(key string, snapshot quorum.Snapshot, now time.Time) (ok bool, errReply *keyspace.Reply) {
	words := r.wordsForKey(key)
	if r.moves() {
		words = []string{"blpop", key, "0"}
	}
	reply, err := program.Guess{key: program.EntryOf(snapshot)}.Snapshot(now).Do(words)
	switch {
	case err != nil:
		return true, nil // only a try can determine this
	case reply.Kind == keyspace.Error:
		return false, &reply
	}
	return !isNil(reply), nil
}

// isNil reports whether the command found no element.
func isNil(reply keyspace.Reply) bool {
	return reply.Kind == keyspace.Nil || reply.Kind == keyspace.NilArray
}
