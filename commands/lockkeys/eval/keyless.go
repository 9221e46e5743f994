package eval

import (
	"redlock-proxy/commands/catalog/keys"
	"redlock-proxy/commands/catalog/spec"
	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/lockkeys/allkeys"
	"redlock-proxy/commands/lockkeys/keyspace"
	"redlock-proxy/commands/lockkeys/program"
)

// errUnknownCall and errCallNotAllowed are Redis' wording. Redis adds the script and its line.
const (
	errUnknownCall    = "ERR Unknown Redis command called from script"
	errCallNotAllowed = "ERR This Redis command is not allowed from script"
)

// keyless has the commands without keys that a script on lock keys may call, except TIME. They are
// called with a right number of arguments. The map is read-only.
var keyless = map[string]func(s *scriptCalls, words []string) (keyspace.Reply, error){
	"ping":     func(_ *scriptCalls, words []string) (keyspace.Reply, error) { return Pong(words), nil },
	"echo":     func(_ *scriptCalls, words []string) (keyspace.Reply, error) { return keyspace.BulkReply(words[1]), nil },
	"select":   (*scriptCalls).selectDB,
	"keys":     (*scriptCalls).keys,
	"scan":     (*scriptCalls).scan,
	"dbsize":   (*scriptCalls).dbsize,
	"flushdb":  (*scriptCalls).flush,
	"flushall": (*scriptCalls).flush,
}

func (s *scriptCalls) keyless(name string, words []string) (keyspace.Reply, error) {
	if !syntax.Fits(spec.Find([]byte(name)).Arity, len(words)) {
		return keyspace.ErrorReply(errCallWords), nil
	}
	return keyless[name](s, words)
}

// Pong returns the reply to PING [message].
func Pong(words []string) keyspace.Reply {
	switch len(words) {
	case 1:
		return keyspace.Reply{Kind: keyspace.Status, Str: "PONG"}
	case 2:
		return keyspace.BulkReply(words[1])
	default:
		return keyspace.ErrorReply(syntax.WrongArity("ping"))
	}
}

// Select returns the reply to SELECT in a program. A program runs in database db only: other is set
// if SELECT names another database, which must be refused.
func Select(db int, index string) (reply keyspace.Reply, other bool) {
	n, ok := syntax.Int(index)
	switch {
	case !ok:
		return keyspace.ErrorReply(syntax.ErrNotInteger), false
	case n < 0:
		return keyspace.ErrorReply("ERR DB index is out of range"), false
	}
	return keyspace.OK(), n != int64(db)
}

func (s *scriptCalls) selectDB(words []string) (keyspace.Reply, error) {
	reply, other := Select(s.db, words[1])
	if other {
		return reply, refused(
			"ERR SELECT of database %s cannot be called by a script on lock keys: its lock keys are in database %d",
			syntax.Shown(words[1]), s.db)
	}
	return reply, nil
}

// heldKeys returns the lock keys that match a glob. With a kind, it returns only keys of that kind.
// It refuses a glob that may match keys of the upstream, because the program cannot read them.
func (s *scriptCalls) heldKeys(command, match, kind string) (held []string, err error) {
	switch {
	case s.rights.HasUpstream() && !s.lockKeys.Cover(match):
		return nil, refused(
			"ERR '%s' of '%s' cannot be called by a script on lock keys: the pattern may match keys on the upstream",
			command, syntax.Shown(match))
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
	held, err := s.heldKeys("keys", words[1], "")
	return keyspace.Texts(held), err
}

// scan runs SCAN. It returns all keys at once.
func (s *scriptCalls) scan(words []string) (keyspace.Reply, error) {
	match, kind, begins, failed := allkeys.ParseWhole(words)
	if failed != "" {
		return keyspace.ErrorReply(failed), nil
	}
	var held []string
	if begins {
		var err error
		if held, err = s.heldKeys("scan", match, kind); err != nil {
			return keyspace.Reply{}, err
		}
	}
	return keyspace.ArrayReply(keyspace.BulkReply("0"), keyspace.Texts(held)), nil
}

func (s *scriptCalls) dbsize([]string) (keyspace.Reply, error) {
	held, err := s.heldKeys("dbsize", "*", "")
	return keyspace.IntReply(int64(len(held))), err
}

func (s *scriptCalls) flush(words []string) (keyspace.Reply, error) {
	return keyspace.Reply{}, &program.Refusal{Text: FlushRefusal(syntax.Lower(words[0]))}
}

// mayRun reports whether the client may run a command. known is false if the upstream cannot be
// asked, because the command would change the connection.
func (s *scriptCalls) mayRun(words []string) (may, known bool) {
	name := syntax.Lower(words[0])
	cmd := spec.Find([]byte(name))
	if cmd == nil {
		return false, false
	}
	questions := callQuestions(words)
	if len(questions) == 0 && cmd.Effect == spec.None && syntax.Fits(cmd.Arity, len(words)) {
		questions = [][]string{words}
	}
	if len(questions) == 0 && !s.rights.NeedsCheck() {
		return true, s.rights.All()
	}
	return s.rights.Refusal(words, questions) == "", true
}
