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
	snapshot *keyspace.Snapshot
	effects  [][]string
	rights   *rights.Permissions
	denied   bool // the client lacks the permission for a call
	db       int
	// listedGlobs holds the globs whose lock keys the snapshot contains, in all runs of a program.
	listedGlobs map[string]bool
	// listedKeys returns the keys that commands on all keys list at the client's port.
	listedKeys     func(keys []string) []string
	findOwnCommand func(name []byte) *command.Command
	charge         func(bytes int) // charges the run for the current call
}

// errCallArity is Redis' error for a call with a wrong number of arguments. Redis adds the script
// and its line.
const errCallArity = "ERR Wrong number of args calling Redis command from script"

// do carries out one call of a script, if the client may run the command. An error ends the run: a
// key must be read first, or lock keys do not support the command. do calls charge before it
// processes bytes.
func (s *scriptCalls) do(words []string, charge func(bytes int)) (keyspace.Reply, error) {
	s.charge = charge
	name := syntax.Lower(words[0])
	if refusal := s.rights.Refusal(words, permissionChecks(words)); refusal != "" {
		s.denied = true
		return keyspace.ErrorReply(denial(refusal)), nil
	}
	switch {
	case name == "time":
		return s.time(), nil
	case keylessCommands[name] != nil:
		return s.runKeyless(name, words)
	case name == "publish" || name == "spublish":
		return s.publish(name, words)
	case !keyspace.IsSupported(name):
		return s.handleUnsupportedCommand(name, words)
	case !keyspace.Fits(name, len(words)):
		return keyspace.ErrorReply(errCallArity), nil
	}
	names := keyspace.Keys(words)
	lockKeyCount := 0
	for _, key := range names {
		if s.lockKeys.Match([]byte(key)) {
			lockKeyCount++
		}
	}
	switch {
	case lockKeyCount == len(names):
		charge(s.snapshot.Cost(words))
		return s.snapshot.Do(words)
	case lockKeyCount == 0:
		return s.handleUpstreamCommand(name, words, names[0])
	}
	return keyspace.Reply{}, s.mixedError(name, words)
}

// refusalError returns the error that ends a run with an error reply.
func refusalError(format string, args ...any) error {
	return &program.Refusal{Text: fmt.Sprintf(format, args...)}
}

// time runs TIME. It returns the time of the Snapshot, which is the same for the whole run.
func (s *scriptCalls) time() keyspace.Reply {
	now := s.snapshot.Now()
	return keyspace.ArrayReply(
		keyspace.BulkReply(strconv.FormatInt(now.Unix(), 10)),
		keyspace.BulkReply(strconv.Itoa(now.Nanosecond()/1000)))
}

// handleUnsupportedCommand handles a command that a Snapshot cannot carry out.
func (s *scriptCalls) handleUnsupportedCommand(name string, words []string) (keyspace.Reply, error) {
	rule, cmd := spec.KeysOf([]byte(name)), spec.Find([]byte(name))
	switch {
	case cmd == nil:
		if ownCommand := s.findOwnCommand([]byte(name)); ownCommand != nil && ownCommand.IsOwn() {
			return keyspace.Reply{}, refusalError(
				"ERR '%s' cannot be called by a script: it is a command of the proxy; send it by itself", ownCommand.Name)
		}
		return keyspace.ErrorReply(errUnknownCall), nil
	case rule == nil && cmd.Effect != spec.NoEffect:
		return keyspace.ErrorReply(errCallNotAllowed), nil
	case rule == nil:
		return keyspace.Reply{}, refusalError(
			"ERR '%s' cannot be called by a script on lock keys: it is not a command on keys; send it by itself",
			syntax.Excerpt(words[0]))
	}
	args := syntax.Bytes(words)
	places, _ := rule.Places(args, len(args))
	switch lockIndex, otherIndex := s.lockKeys.Split(args, places); {
	case lockIndex >= 0:
		return keyspace.Reply{}, &program.Refusal{Text: lockkeys.UnfitKeyError(name, args[lockIndex])}
	case otherIndex >= 0:
		return s.handleUpstreamCommand(name, words, words[otherIndex])
	}
	return keyspace.ErrorReply(errCallArity), nil
}

func (s *scriptCalls) mixedError(name string, words []string) error {
	args := syntax.Bytes(words)
	places, _ := spec.KeysOf([]byte(name)).Places(args, len(args))
	lockIndex, otherIndex := s.lockKeys.Split(args, places)
	return &program.Refusal{Text: lockkeys.MixedKeysError(name, args[lockIndex], args[otherIndex])}
}

func (s *scriptCalls) publish(name string, words []string) (keyspace.Reply, error) {
	switch {
	case len(words) != 3:
		return keyspace.ErrorReply(errCallArity), nil
	case !s.rights.CanPublish():
		return keyspace.Reply{}, refusalError(
			"ERR '%s' to '%s' cannot be called by a script on lock keys: there is no upstream",
			name, syntax.Excerpt(words[1]))
	}
	return s.addEffect(words)
}

// handleUpstreamCommand handles a command on a key that is not a lock key. It refuses all commands
// except those that notify waiters: they become side effects of the script. Their replies are still
// unknown, so the script gets 1.
func (s *scriptCalls) handleUpstreamCommand(name string, words []string, key string) (keyspace.Reply, error) {
	reason := ""
	switch {
	case !notifiesWaiters(name):
		reason = "on keys of the upstream it can only call DEL, UNLINK, LPUSH, RPUSH, EXPIRE and PEXPIRE"
	case !s.rights.HasUpstream():
		reason = "the key is not a lock key, and there is no upstream"
	}
	if reason != "" {
		return keyspace.Reply{}, refusalError(
			"ERR '%s' of '%s' cannot be called by a script on lock keys: %s", name, syntax.Excerpt(key), reason)
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
		return keyspace.Reply{}, refusalError(
			"ERR too many side effects: a script on lock keys may have at most %d", maxEffects)
	}
	s.effects = append(s.effects, words)
	return keyspace.IntReply(1), nil
}
