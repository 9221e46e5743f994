package commands

import (
	"fmt"
	"strconv"

	"redlock-proxy/commands/register"
)

// scriptCalls carries out what a script calls: on lock keys in the Space; what is for
// the upstream is put aside until the run has come to its end.
type scriptCalls struct {
	table  *Table
	space  *register.Space
	asides [][]string
}

// errCallWords is in the wording of Redis, which adds the script and its line to it.
const errCallWords = "ERR Wrong number of args calling Redis command from script"

// do carries out one call of a script that may do what it calls. An error ends the run: a key must be read first, or the
// script does what is not done on lock keys.
func (s *scriptCalls) do(words []string) (register.Reply, error) {
	name := lower([]byte(words[0]))
	switch {
	case name == "time":
		return s.time(), nil
	case name == "publish" || name == "spublish":
		return s.publish(name, words)
	case !register.Supported(name):
		return s.foreign(name, words)
	case !register.Fits(name, len(words)):
		return register.Fail(errCallWords), nil
	}
	keys := register.Keys(words)
	locked := 0
	for _, key := range keys {
		if s.table.lockKeys.Match([]byte(key)) {
			locked++
		}
	}
	switch {
	case locked == len(keys):
		return s.space.Do(words)
	case locked == 0:
		return s.elsewhere(name, words, keys[0])
	}
	return register.Reply{}, s.mixed(name, words)
}

// time is TIME: the moment of the view, which is the same for the whole run.
func (s *scriptCalls) time() register.Reply {
	now := s.space.Now()
	return register.List(
		register.Text(strconv.FormatInt(now.Unix(), 10)),
		register.Text(strconv.Itoa(now.Nanosecond()/1000)))
}

// foreign is a command that no Space carries out.
func (s *scriptCalls) foreign(name string, words []string) (register.Reply, error) {
	rule := keyRule([]byte(name))
	if rule == nil {
		return register.Reply{}, &refusal{fmt.Sprintf("ERR '%s' cannot be called by a script on lock keys", shown([]byte(words[0])))}
	}
	all := wordBytes(words)
	places, _ := rule.Places(all, len(all))
	switch lock, other := s.table.sortOut(all, places); {
	case lock >= 0:
		return register.Reply{}, &refusal{unfit(name, all[lock])}
	case other >= 0:
		return s.elsewhere(name, words, words[other])
	}
	return register.Fail(errCallWords), nil
}

func (s *scriptCalls) mixed(name string, words []string) error {
	all := wordBytes(words)
	places, _ := keyRule([]byte(name)).Places(all, len(all))
	lock, other := s.table.sortOut(all, places)
	return &refusal{mixed(name, all[lock], all[other])}
}

func (s *scriptCalls) publish(name string, words []string) (register.Reply, error) {
	switch {
	case len(words) != 3:
		return register.Fail(errCallWords), nil
	case s.table.opts.Aside == nil:
		return register.Reply{}, &refusal{fmt.Sprintf("ERR '%s' to '%s' by a script on lock keys needs an upstream, and there is none", name, shown([]byte(words[1])))}
	}
	return s.aside(words)
}

// elsewhere is a command on a key that is no lock key. Those by which waiters are told
// of a release are for the upstream; what they answer is not known yet, and taken to
// be 1.
func (s *scriptCalls) elsewhere(name string, words []string, key string) (register.Reply, error) {
	why := ""
	switch {
	case !isSignal(name):
		why = "it is not done for a key that stands on the upstream"
	case s.table.opts.Aside == nil:
		why = "there is no upstream"
	}
	if why != "" {
		return register.Reply{}, &refusal{fmt.Sprintf("ERR '%s' of '%s', which is no lock key, by a script on lock keys: %s", name, shown([]byte(key)), why)}
	}
	return s.aside(words)
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

// maxAsides bounds how many commands a script may leave for the upstream.
const maxAsides = 1000

func (s *scriptCalls) aside(words []string) (register.Reply, error) {
	if len(s.asides) == maxAsides {
		return register.Reply{}, &refusal{fmt.Sprintf("ERR a script on lock keys may call at most %d commands beside them", maxAsides)}
	}
	s.asides = append(s.asides, words)
	return register.Number(1), nil
}

// wordBytes are words as they came.
func wordBytes(words []string) [][]byte {
	all := make([][]byte, len(words))
	for i, w := range words {
		all[i] = []byte(w)
	}
	return all
}
