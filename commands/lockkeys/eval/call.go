package eval

import (
	"fmt"
	"strconv"

	"redlock-proxy/commands/catalog/keys"
	"redlock-proxy/commands/catalog/spec"
	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/command"
	"redlock-proxy/commands/lockkeys"
	"redlock-proxy/commands/lockkeys/keyspace"
	"redlock-proxy/commands/lockkeys/program"
	"redlock-proxy/commands/rights"
)

// scriptCalls carries out the commands that a script calls. Commands on lock keys run on the
// Snapshot; commands for the upstream wait until the run has ended.
type scriptCalls struct {
	lockKeys keys.Patterns
	space    *keyspace.Snapshot
	effects  [][]string
	rights   *rights.Permissions
	denied   bool // a call was refused because the client lacks the permission
	db       int
	// listed are the globs whose lock keys space contains, in all runs of a program.
	listed map[string]bool
	own    func(name []byte) *command.Command
}

// errCallWords is Redis' wording. Redis adds the script and its line.
const errCallWords = "ERR Wrong number of args calling Redis command from script"

// do carries out one call of a script, if the client may run the command. An error ends the run: a
// key must be read first, or the command is not allowed on lock keys.
func (s *scriptCalls) do(words []string) (keyspace.Reply, error) {
	name := syntax.Lower(words[0])
	if refusal := s.rights.Refusal(words, callQuestions(words)); refusal != "" {
		s.denied = true
		return keyspace.ErrorReply(denial(refusal)), nil
	}
	switch {
	case name == "time":
		return s.time(), nil
	case keyless[name] != nil:
		return s.keyless(name, words)
	case name == "publish" || name == "spublish":
		return s.publish(name, words)
	case !keyspace.Supported(name):
		return s.unsupported(name, words)
	case !keyspace.Fits(name, len(words)):
		return keyspace.ErrorReply(errCallWords), nil
	}
	names := keyspace.Keys(words)
	locked := 0
	for _, key := range names {
		if s.lockKeys.Match([]byte(key)) {
			locked++
		}
	}
	switch {
	case locked == len(names):
		return s.space.Do(words)
	case locked == 0:
		return s.upstreamCommand(name, words, names[0])
	}
	return keyspace.Reply{}, s.mixedError(name, words)
}

// refused returns the error that ends a run with an error reply.
func refused(format string, args ...any) error {
	return &program.Refusal{Text: fmt.Sprintf(format, args...)}
}

// time runs TIME. It returns the time of the Snapshot, which is the same for the whole run.
func (s *scriptCalls) time() keyspace.Reply {
	now := s.space.Now()
	return keyspace.ArrayReply(
		keyspace.BulkReply(strconv.FormatInt(now.Unix(), 10)),
		keyspace.BulkReply(strconv.Itoa(now.Nanosecond()/1000)))
}

// unsupported handles a command that a Snapshot cannot carry out.
func (s *scriptCalls) unsupported(name string, words []string) (keyspace.Reply, error) {
	rule, known := spec.KeysOf([]byte(name)), spec.Find([]byte(name))
	switch {
	case known == nil:
		if own := s.own([]byte(name)); own != nil && own.IsOurs() {
			return keyspace.Reply{}, refused(
				"ERR '%s' cannot be called by a script: it is a command of the proxy; send it by itself", own.Name)
		}
		return keyspace.ErrorReply(errUnknownCall), nil
	case rule == nil && known.Effect != spec.None:
		return keyspace.ErrorReply(errCallNotAllowed), nil
	case rule == nil:
		return keyspace.Reply{}, refused(
			"ERR '%s' cannot be called by a script on lock keys: it is not a command on keys; send it by itself",
			syntax.Shown(words[0]))
	}
	all := syntax.Bytes(words)
	places, _ := rule.Positions(all, len(all))
	switch lock, other := s.lockKeys.Split(all, places); {
	case lock >= 0:
		return keyspace.Reply{}, &program.Refusal{Text: lockkeys.Unfit(name, all[lock])}
	case other >= 0:
		return s.upstreamCommand(name, words, words[other])
	}
	return keyspace.ErrorReply(errCallWords), nil
}

func (s *scriptCalls) mixedError(name string, words []string) error {
	all := syntax.Bytes(words)
	places, _ := spec.KeysOf([]byte(name)).Positions(all, len(all))
	lock, other := s.lockKeys.Split(all, places)
	return &program.Refusal{Text: lockkeys.Mixed(name, all[lock], all[other])}
}

func (s *scriptCalls) publish(name string, words []string) (keyspace.Reply, error) {
	switch {
	case len(words) != 3:
		return keyspace.ErrorReply(errCallWords), nil
	case !s.rights.MayPublish():
		return keyspace.Reply{}, refused(
			"ERR '%s' to '%s' cannot be called by a script on lock keys: there is no upstream",
			name, syntax.Shown(words[1]))
	}
	return s.addEffect(words)
}

// upstreamCommand handles a command on a key that is not a lock key. Commands that notify waiters
// become side effects. Their replies are not known yet, so the script gets 1.
func (s *scriptCalls) upstreamCommand(name string, words []string, key string) (keyspace.Reply, error) {
	reason := ""
	switch {
	case !notifiesWaiters(name):
		reason = "on keys of the upstream it can only call DEL, UNLINK, LPUSH, RPUSH, EXPIRE and PEXPIRE"
	case !s.rights.HasUpstream():
		reason = "the key is not a lock key, and there is no upstream"
	}
	if reason != "" {
		return keyspace.Reply{}, refused(
			"ERR '%s' of '%s' cannot be called by a script on lock keys: %s", name, syntax.Shown(key), reason)
	}
	return s.addEffect(words)
}

// notifiesWaiters reports whether a command may change the list on which waiters of
// python-redis-lock block.
func notifiesWaiters(name string) bool {
	switch name {
	case "del", "unlink", "lpush", "rpush", "expire", "pexpire":
		return true
	}
	return false
}

// maxEffects limits the commands that a script may send to the upstream.
const maxEffects = 1000

func (s *scriptCalls) addEffect(words []string) (keyspace.Reply, error) {
	if len(s.effects) == maxEffects {
		return keyspace.Reply{}, refused(
			"ERR too many side effects: a script on lock keys may have at most %d", maxEffects)
	}
	s.effects = append(s.effects, words)
	return keyspace.IntReply(1), nil
}
