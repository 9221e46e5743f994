package commands

import (
	"context"
	"fmt"
	"strings"
)

// Routes reports whether lock keys are configured, so that commands must be looked
// at for them.
func (t *Table) Routes() bool { return t.lockKeys.Any() }

// IsLockKey reports whether a key stands on the lock masters.
func (t *Table) IsLockKey(key []byte) bool { return t.lockKeys.Match(key) }

// Keyed gives the rule of a command that has keys; nil for any other one, and for
// all where no lock keys are configured.
func (t *Table) Keyed(name []byte) *KeyRule {
	if !t.lockKeys.Any() {
		return nil
	}
	return keyRule(name)
}

// LockCommand finds what runs a command that names a lock key: one that does it on
// the lock masters, or one that says why it cannot be done there. It is nil for a
// command that is for the upstream alone. WATCH is not asked for here.
func (t *Table) LockCommand(words [][]byte) *Command {
	cmd, why := t.lockCommand(words)
	if why != "" {
		return refusing(lower(words[0]), why)
	}
	return cmd
}

// lockCommand is LockCommand with the error of one that cannot be done.
func (t *Table) lockCommand(words [][]byte) (cmd *Command, why string) {
	rule := t.Keyed(words[0])
	if rule == nil {
		return nil, ""
	}
	places, _ := rule.Places(words, len(words))
	lock, other := t.sortOut(words, places)
	if lock < 0 && other >= 0 {
		return nil, ""
	}
	name := lower(words[0])
	cmd = t.locked[name]
	switch {
	case lock < 0 && !(isScript(name) && t.hidesLockKey(name, words)):
		return nil, ""
	case lock >= 0 && cmd == nil:
		return nil, unfit(name, words[lock])
	case lock >= 0 && other >= 0 && !isScript(name):
		return nil, mixed(name, words[lock], words[other])
	}
	return cmd, ""
}

// isScript is true of the commands that run a script of the client's, which may
// use keys of both kinds.
func isScript(name string) bool {
	switch name {
	case "eval", "evalsha", "eval_ro", "evalsha_ro":
		return true
	}
	return false
}

// sortOut finds the first lock key and the first other key; -1 where there is none.
func (t *Table) sortOut(words [][]byte, places KeyPlaces) (lock, other int) {
	lock, other = -1, -1
	for i := range places.all() {
		switch {
		case i >= len(words):
			return lock, other
		case t.lockKeys.Match(words[i]):
			if lock < 0 {
				lock = i
			}
		case other < 0:
			other = i
		}
	}
	return lock, other
}

// unfit says why a command makes no sense for a lock key.
func unfit(name string, key []byte) string {
	return fmt.Sprintf("ERR lock key '%s': '%s' cannot run on the lock masters; a lock key is a string with an expiry, held by a majority of them",
		shown(key), name)
}

func mixed(name string, lock, other []byte) string {
	return fmt.Sprintf("ERR '%s' names lock keys and others: '%s' stands on the lock masters, '%s' on the upstream; send two commands",
		name, shown(lock), shown(other))
}

// shown is a key as errors show it.
func shown(key []byte) []byte { return cString(key, shownBytes) }

// refusing is a command that answers with an error.
func refusing(name, text string) *Command {
	return &Command{Name: name, arity: -1, guarded: true, run: func(_ *Table, _ context.Context, _ *Client, _ [][]byte, out *Reply) {
		out.Error(text)
	}}
}

// hidesLockKey reports whether a script that is given no key uses a lock key all
// the same: one written in its body, or one in its arguments.
func (t *Table) hidesLockKey(name string, words [][]byte) bool {
	for _, arg := range words[min(3, len(words)):] {
		if t.lockKeys.Match(arg) {
			return true
		}
	}
	return len(words) > 2 && t.writtenIn(name, words[1])
}

// writtenIn reports whether a lock key is written in a script, given by its body
// or by its SHA-1.
func (t *Table) writtenIn(name string, script []byte) bool {
	for _, text := range t.literals(strings.HasPrefix(name, "evalsha"), string(script)) {
		if t.lockKeys.Match([]byte(text)) {
			return true
		}
	}
	return false
}

// Ahead is for a command that is too long to be held: of so many words, the first
// ones are given. Locked is set where these name a lock key. Else places are the
// words that may still be one; known is false where that cannot be told.
func (t *Table) Ahead(words [][]byte, total int) (places KeyPlaces, locked, known bool) {
	rule := t.Keyed(words[0])
	if rule == nil {
		return KeyPlaces{}, false, true
	}
	places, known = rule.Places(words, total)
	name := lower(words[0])
	if known && isScript(name) && places.Last() < 0 && len(words) > 2 {
		places[0] = span{3, total - 1, 1}
		locked = t.writtenIn(name, words[1])
	}
	lock, _ := t.sortOut(words, places)
	return places, locked || lock >= 0, known
}

// noUpstream is the answer to a command on other keys than lock keys where there
// is no upstream.
func (t *Table) noUpstream(words [][]byte) string {
	rule := t.Keyed(words[0])
	places, _ := rule.Places(words, len(words))
	if _, other := t.sortOut(words, places); other >= 0 {
		return fmt.Sprintf("ERR no upstream: key '%s' is not a lock key (--lock-keys)", shown(words[other]))
	}
	return fmt.Sprintf("ERR no upstream: '%s' names no lock key (--lock-keys)", lower(words[0]))
}

// Known reports whether a proxy without an upstream answers a command.
func (t *Table) Known(name []byte) bool {
	return t.Lookup(name) != nil || t.Keyed(name) != nil || t.keyless(lower(name)) != nil
}

// keyless finds a command that is there for lock keys, and is given none.
func (t *Table) keyless(name string) *Command {
	if name == "script" && t.lockKeys.Any() {
		return t.locked[name]
	}
	return t.multi(name)
}

// Serve finds what answers a known command of a client of a proxy without an
// upstream.
func (t *Table) Serve(c *Client, words [][]byte) *Command {
	if c.InMulti() {
		if cmd := t.MultiCommand(c, words); cmd != nil {
			return cmd
		}
	}
	cmd := t.Lookup(words[0])
	switch name := lower(words[0]); {
	case cmd != nil:
	case name == "watch":
		cmd = t.WatchCommand(c, words)
	case t.Keyed(words[0]) == nil:
		cmd = t.keyless(name)
	default:
		cmd = t.LockCommand(words)
	}
	if cmd == nil && len(words) == 1 {
		return refusing(lower(words[0]), wrongArity(lower(words[0])))
	}
	if cmd == nil {
		return refusing(lower(words[0]), t.noUpstream(words))
	}
	return cmd
}
