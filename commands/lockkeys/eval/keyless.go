package eval

import (
	"fmt"

	"redlock-proxy/commands/catalog/keys"
	"redlock-proxy/commands/catalog/spec"
	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/lockkeys/allkeys"
	"redlock-proxy/commands/lockkeys/keyspace"
	"redlock-proxy/commands/lockkeys/program"
)

// errUnknownCall and errCallNotAllowed are in the wording of Redis, which adds the script and its
// line to it.
const (
	errUnknownCall    = "ERR Unknown Redis command called from script"
	errCallNotAllowed = "ERR This Redis command is not allowed from script"
)

// keyless are the calls without keys that a script on lock keys may make, but for TIME. Each has as
// many words as Redis wants. They are never changed.
var keyless = map[string]func(s *scriptCalls, words []string) (keyspace.Reply, error){
	"ping":     func(_ *scriptCalls, words []string) (keyspace.Reply, error) { return Pong(words), nil },
	"echo":     func(_ *scriptCalls, words []string) (keyspace.Reply, error) { return keyspace.Text(words[1]), nil },
	"select":   (*scriptCalls).selectDB,
	"keys":     (*scriptCalls).keys,
	"scan":     (*scriptCalls).scan,
	"dbsize":   (*scriptCalls).dbsize,
	"flushdb":  (*scriptCalls).flush,
	"flushall": (*scriptCalls).flush,
}

func (s *scriptCalls) keyless(name string, words []string) (keyspace.Reply, error) {
	if !syntax.Fits(spec.Find([]byte(name)).Arity, len(words)) {
		return keyspace.Fail(errCallWords), nil
	}
	return keyless[name](s, words)
}

// Pong is PING [message].
func Pong(words []string) keyspace.Reply {
	switch len(words) {
	case 1:
		return keyspace.Reply{Kind: keyspace.Status, Str: "PONG"}
	case 2:
		return keyspace.Text(words[1])
	default:
		return keyspace.Fail(syntax.WrongArity("ping"))
	}
}

// Select is SELECT of the database that a program runs in. Its keys are all of that one: another is
// refused.
func Select(db int, index string) (reply keyspace.Reply, other bool) {
	n, ok := syntax.Int(index)
	switch {
	case !ok:
		return keyspace.Fail(syntax.ErrNotInteger), false
	case n < 0:
		return keyspace.Fail("ERR DB index is out of range"), false
	}
	return keyspace.OK(), n != int64(db)
}

func (s *scriptCalls) selectDB(words []string) (keyspace.Reply, error) {
	reply, other := Select(s.db, words[1])
	if other {
		return reply, &program.Refusal{Text: fmt.Sprintf("ERR SELECT of database %s by a script on lock keys of database %d", syntax.Shown(words[1]), s.db)}
	}
	return reply, nil
}

// held are the lock keys that match a glob, and, with a kind, hold a value of it. Where it may
// match keys of the upstream, too, it is refused: those are not seen here.
func (s *scriptCalls) held(command, match, kind string) (held []string, err error) {
	switch {
	case s.rights.HasUpstream() && !s.lockKeys.Cover(match):
		return nil, &program.Refusal{Text: fmt.Sprintf("ERR '%s' of '%s' by a script on lock keys: it may match keys on the upstream", command, syntax.Shown(match))}
	case !s.listed[match]:
		return nil, &program.UnlistedError{Match: match, Found: func([]string) { s.listed[match] = true }}
	}
	for _, key := range s.space.Held(kind) {
		if s.lockKeys.Match([]byte(key)) && keys.Match(match, key) {
			held = append(held, key)
		}
	}
	return held, nil
}

func (s *scriptCalls) keys(words []string) (keyspace.Reply, error) {
	held, err := s.held("keys", words[1], "")
	return keyspace.Texts(held), err
}

// scan returns all at once.
func (s *scriptCalls) scan(words []string) (keyspace.Reply, error) {
	match, kind, begins, failed := allkeys.ParseWhole(words)
	if failed != "" {
		return keyspace.Fail(failed), nil
	}
	var held []string
	if begins {
		var err error
		if held, err = s.held("scan", match, kind); err != nil {
			return keyspace.Reply{}, err
		}
	}
	return keyspace.List(keyspace.Text("0"), keyspace.Texts(held)), nil
}

func (s *scriptCalls) dbsize([]string) (keyspace.Reply, error) {
	held, err := s.held("dbsize", "*", "")
	return keyspace.Number(int64(len(held))), err
}

func (s *scriptCalls) flush(words []string) (keyspace.Reply, error) {
	return keyspace.Reply{}, &program.Refusal{Text: FlushRefusal(syntax.Lower(words[0]))}
}

// may reports whether the client may do a command, as far as the upstream can be asked about it:
// not about one that would do something to the connection.
func (s *scriptCalls) may(words []string) (may, known bool) {
	name := syntax.Lower(words[0])
	what := spec.Find([]byte(name))
	if what == nil {
		return false, false
	}
	questions := callQuestions(words)
	if len(questions) == 0 && what.Effect == spec.None && syntax.Fits(what.Arity, len(words)) {
		questions = [][]string{words}
	}
	if len(questions) == 0 && !s.rights.IsJudged() {
		return true, s.rights.All()
	}
	return s.rights.Refusal(words, questions) == "", true
}
