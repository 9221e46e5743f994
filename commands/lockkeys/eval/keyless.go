package eval

import (
	"redlock-proxy/commands/catalog/keys"
	"redlock-proxy/commands/catalog/spec"
	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/lockkeys/allkeys"
	"redlock-proxy/commands/lockkeys/keyspace"
	"redlock-proxy/commands/lockkeys/program"
)

// errUnknownCall and errCallNotAllowed are Redis' errors for a call of an unknown command, and of a
// command that scripts may not call. Redis adds the script and its line.
const (
	errUnknownCall    = "ERR Unknown Redis command called from script"
	errCallNotAllowed = "ERR This Redis command is not allowed from script"
)

// keylessCommands implements the commands without keys for scripts on lock keys, except TIME,
// PUBLISH and SPUBLISH. runKeyless checks the number of their arguments. The map is read-only.
var keylessCommands = map[string]func(s *scriptCalls, words []string) (keyspace.Reply, error){
	"ping":     func(_ *scriptCalls, words []string) (keyspace.Reply, error) { return Pong(words), nil },
	"echo":     func(_ *scriptCalls, words []string) (keyspace.Reply, error) { return keyspace.BulkReply(words[1]), nil },
	"select":   (*scriptCalls).selectDB,
	"keys":     (*scriptCalls).keys,
	"scan":     (*scriptCalls).scan,
	"dbsize":   (*scriptCalls).dbsize,
	"flushdb":  (*scriptCalls).flush,
	"flushall": (*scriptCalls).flush,
}

func (s *scriptCalls) runKeyless(name string, words []string) (keyspace.Reply, error) {
	if !syntax.FitsArity(spec.Find([]byte(name)).Arity, len(words)) {
		return keyspace.ErrorReply(errCallArity), nil
	}
	return keylessCommands[name](s, words)
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

// Select returns the reply to SELECT in a program. A program runs only in database db. If SELECT
// names another database, isDifferentDB is true, and the caller must refuse the SELECT.
func Select(db int, index string) (reply keyspace.Reply, isDifferentDB bool) {
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
	reply, isOtherDB := Select(s.db, words[1])
	if isOtherDB {
		return reply, refusalError(
			"ERR SELECT of database %s cannot be called by a script on lock keys: its lock keys are in database %d; "+
				"use one script for each database",
			syntax.Excerpt(words[1]), s.db)
	}
	return reply, nil
}

// workPerByte is the charge for each byte of a glob, and of each name that the program compares
// with it. A comparison may look at a byte several times.
const workPerByte = 8

// listKeys returns the lock keys that match a glob, and that the client's port lists. If kind is
// not "", it returns only keys of this type. It refuses a glob that may match keys of the upstream,
// because the program cannot read them.
func (s *scriptCalls) listKeys(command, match, kind string) (names []string, err error) {
	switch {
	case s.rights.HasUpstream() && !s.lockKeys.Covers(match):
		return nil, refusalError(
			"ERR '%s' of '%s' cannot be called by a script on lock keys: the pattern may match keys on the upstream; "+
				"use a pattern that lock-keys covers",
			command, syntax.Excerpt(match))
	case !s.listedGlobs[match]:
		return nil, &program.UnlistedError{Match: match, OnListed: func([]string) { s.listedGlobs[match] = true }}
	}
	s.charge(workPerByte * len(match))
	pattern := keys.Compile(match)
	for _, key := range s.snapshot.ExistingKeys(kind) {
		s.charge(workPerByte * len(key))
		matches, err := pattern.Match(key)
		switch {
		case err != nil:
			return nil, refusalError("ERR %v", err)
		case matches && s.lockKeys.Match([]byte(key)):
			names = append(names, key)
		}
	}
	return s.listedKeys(names), nil
}

func (s *scriptCalls) keys(words []string) (keyspace.Reply, error) {
	found, err := s.listKeys("keys", words[1], "")
	return keyspace.TextsReply(found), err
}

// scan runs SCAN. The first reply has all keys.
func (s *scriptCalls) scan(words []string) (keyspace.Reply, error) {
	match, kind, isFirst, errText := allkeys.ParseFullScan(words)
	if errText != "" {
		return keyspace.ErrorReply(errText), nil
	}
	var names []string
	if isFirst {
		var err error
		if names, err = s.listKeys("scan", match, kind); err != nil {
			return keyspace.Reply{}, err
		}
	}
	return keyspace.ArrayReply(keyspace.BulkReply("0"), keyspace.TextsReply(names)), nil
}

func (s *scriptCalls) dbsize([]string) (keyspace.Reply, error) {
	found, err := s.listKeys("dbsize", "*", "")
	return keyspace.IntReply(int64(len(found))), err
}

func (s *scriptCalls) flush(words []string) (keyspace.Reply, error) {
	return keyspace.Reply{}, &program.Refusal{Text: FlushRefusal(syntax.Lower(words[0]))}
}

// mayRun reports whether the client may run a command. known is false if the command does not
// exist. It is also false if only the upstream knows the answer, but the proxy cannot ask: the
// command would change the connection, or has a wrong number of words.
func (s *scriptCalls) mayRun(words []string) (allowed, known bool) {
	name := syntax.Lower(words[0])
	cmd := spec.Find([]byte(name))
	if cmd == nil {
		return false, false
	}
	checks := permissionChecks(words)
	if len(checks) == 0 && cmd.Effect == spec.NoEffect && syntax.FitsArity(cmd.Arity, len(words)) {
		checks = [][]string{words}
	}
	if len(checks) == 0 && !s.rights.NeedsCheck() {
		return true, s.rights.HasAll()
	}
	return s.rights.Refusal(words, checks) == "", true
}
