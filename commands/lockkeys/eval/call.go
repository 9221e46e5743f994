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

// scriptCalls carries out what a script calls: on lock keys in the Space; what is for
// the upstream waits until the run has come to its end.
type scriptCalls struct {
	lockKeys keys.Patterns
	space    *keyspace.Space
	effects  [][]string
	rights   *rights.Known
	denied   bool // a call was refused for want of rights
	db       int
	// listed are the globs for which the space has all lock keys, for all runs of a program.
	listed map[string]bool
	own    func(name []byte) *command.Command
}

// errCallWords is in the wording of Redis, which adds the script and its line to it.
const errCallWords = "ERR Wrong number of args calling Redis command from script"

// do carries out one call of a script that may do what it calls. An error ends the run: a key must
// be read first, or the script does what is not done on lock keys.
func (s *scriptCalls) do(words []string) (keyspace.Reply, error) {
	name := syntax.Lower(words[0])
	if refused := s.rights.Refusal(words, callQuestions(words)); refused != "" {
		s.denied = true
		return keyspace.Fail(denial(refused)), nil
	}
	switch {
	case name == "time":
		return s.time(), nil
	case keyless[name] != nil:
		return s.keyless(name, words)
	case name == "publish" || name == "spublish":
		return s.publish(name, words)
	case !keyspace.Supported(name):
		return s.foreign(name, words)
	case !keyspace.Fits(name, len(words)):
		return keyspace.Fail(errCallWords), nil
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
		return s.elsewhere(name, words, names[0])
	}
	return keyspace.Reply{}, s.mixed(name, words)
}

// time is TIME: the moment of the view, which is the same for the whole run.
func (s *scriptCalls) time() keyspace.Reply {
	now := s.space.Now()
	return keyspace.List(
		keyspace.Text(strconv.FormatInt(now.Unix(), 10)),
		keyspace.Text(strconv.Itoa(now.Nanosecond()/1000)))
}

// foreign is a command that no Space carries out.
func (s *scriptCalls) foreign(name string, words []string) (keyspace.Reply, error) {
	rule, known := spec.KeysOf([]byte(name)), spec.Find([]byte(name))
	switch {
	case known == nil:
		if own := s.own([]byte(name)); own != nil && own.IsOurs() {
			return keyspace.Reply{}, &program.Refusal{Text: fmt.Sprintf("ERR '%s' cannot be called by a script: the proxy runs it at once; send it by itself", own.Name)}
		}
		return keyspace.Fail(errUnknownCall), nil
	case rule == nil && known.Effect != spec.None:
		return keyspace.Fail(errCallNotAllowed), nil
	case rule == nil:
		return keyspace.Reply{}, &program.Refusal{Text: fmt.Sprintf("ERR '%s' cannot be called by a script on lock keys", syntax.Shown(words[0]))}
	}
	all := syntax.Bytes(words)
	places, _ := rule.Places(all, len(all))
	switch lock, other := s.lockKeys.Split(all, places); {
	case lock >= 0:
		return keyspace.Reply{}, &program.Refusal{Text: lockkeys.Unfit(name, all[lock])}
	case other >= 0:
		return s.elsewhere(name, words, words[other])
	}
	return keyspace.Fail(errCallWords), nil
}

func (s *scriptCalls) mixed(name string, words []string) error {
	all := syntax.Bytes(words)
	places, _ := spec.KeysOf([]byte(name)).Places(all, len(all))
	lock, other := s.lockKeys.Split(all, places)
	return &program.Refusal{Text: lockkeys.Mixed(name, all[lock], all[other])}
}

func (s *scriptCalls) publish(name string, words []string) (keyspace.Reply, error) {
	switch {
	case len(words) != 3:
		return keyspace.Fail(errCallWords), nil
	case !s.rights.MayPublish():
		return keyspace.Reply{}, &program.Refusal{Text: fmt.Sprintf("ERR '%s' to '%s' by a script on lock keys needs an upstream, and there is none", name, syntax.Shown(words[1]))}
	}
	return s.effect(words)
}

// elsewhere is a command on a key that is no lock key. Those by which waiters are told
// of a release are for the upstream; what they answer is not known yet, and taken to
// be 1.
func (s *scriptCalls) elsewhere(name string, words []string, key string) (keyspace.Reply, error) {
	why := ""
	switch {
	case !isSignal(name):
		why = "it is not done for a key on the upstream"
	case !s.rights.HasUpstream():
		why = "there is no upstream"
	}
	if why != "" {
		return keyspace.Reply{}, &program.Refusal{Text: fmt.Sprintf("ERR '%s' of '%s', which is no lock key, by a script on lock keys: %s", name, syntax.Shown(key), why)}
	}
	return s.effect(words)
}

// isSignal is true of the commands that make and remove the list on which waiters of
// python-redis-lock block.
func isSignal(name string) bool {
	switch name {
	case "del", "unlink", "lpush", "rpush", "expire", "pexpire":
		return true
	}
	return false
}

// maxEffects bounds how many commands a script may leave for the upstream.
const maxEffects = 1000

func (s *scriptCalls) effect(words []string) (keyspace.Reply, error) {
	if len(s.effects) == maxEffects {
		return keyspace.Reply{}, &program.Refusal{Text: fmt.Sprintf("ERR a script on lock keys may call at most %d commands beside them", maxEffects)}
	}
	s.effects = append(s.effects, words)
	return keyspace.Number(1), nil
}
