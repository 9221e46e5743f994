package commands

import (
	"context"
	"fmt"
	"slices"

	"redlock-proxy/commands/catalog/keys"
	"redlock-proxy/commands/catalog/spec"
	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/command"
	"redlock-proxy/commands/keyspace"
	"redlock-proxy/commands/lockkeys/program"
	"redlock-proxy/quorum"
)

// lockedCommands are the ordinary commands that run on lock keys, and those of scripts, by name.
func lockedCommands(p *programs, s *scripts, waits func(command.Call)) map[string]*command.Command {
	all := map[string]*command.Command{"script": s.scriptCommand()}
	for name, docs := range map[string]command.Docs{
		"eval":       command.DocsOf("scripting", "Runs a script on lock keys.", "2.6.0"),
		"evalsha":    command.DocsOf("scripting", "Runs a script on lock keys, given by its SHA-1.", "2.6.0"),
		"eval_ro":    command.DocsOf("scripting", "Runs a script that only reads lock keys.", "7.0.0"),
		"evalsha_ro": command.DocsOf("scripting", "Runs a script that only reads lock keys, given by its SHA-1.", "7.0.0"),
	} {
		all[name] = command.OfRedis(name, s.eval, docs)
	}
	for _, name := range keyspace.Names() {
		docs, known := command.DocsOf(keyspace.Docs(name)), spec.Find([]byte(name))
		docs.Reads = !known.Does(spec.Writes)
		if _, fixed := known.Keys.Fixed(); fixed || known.Keys.Span.First == 1 {
			docs.Keys = known.Keys.Span
		} else if known.Keys == keys.OfSort {
			docs.Keys = keys.One(1) // the other one is told of by its word
		}
		run := p.ordinary
		if known.Does(spec.Blocks) {
			run = waits
		}
		all[name] = command.OfRedis(name, run, docs)
	}
	for _, c := range all {
		c.Guarded = true
	}
	return all
}

// placeOf tells where a key stands on the masters: in a cell of its own name or, with a hash tag, if it matches, in that of its tag.
// It depends on nothing else, so that all proxies with the same settings agree.
func placeOf(prefix string, tagged, moving keys.Patterns) func(db int, key string) quorum.Key {
	return func(db int, key string) quorum.Key {
		place := quorum.Key{DB: db, Name: prefix + key, Moves: moving.Any() && moving.Match([]byte(key))}
		if tagged.Any() {
			if tag, has := keys.Tag(key); has && tagged.Match([]byte(key)) {
				place.Tag = prefix + tag
			}
		}
		return place
	}
}

// Rules are quorum.Options.Settings: what decides which key is which lock, the same for the same globs in whatever order.
func Rules(prefix string, lockKeys, lockTags []string, guard, fromUpstream bool) string {
	globs := func(all []string) []string { return syntax.Distinct(slices.Sorted(slices.Values(all))) }
	rules := fmt.Sprintf("guard %v\nkey-prefix %q\nlock-keys %q\nlock-tags %q", guard, prefix, globs(lockKeys), globs(lockTags))
	if fromUpstream {
		rules += "\n" + quorum.LocksUpstream
	}
	return rules
}

// ordinary is an ordinary command on lock keys.
func (p *programs) ordinary(c command.Call) {
	words := syntax.Strings(c.Args)
	if !p.acquire(c, words) {
		p.carry(c, p.commandProgram(c.Client, words))
	}
}

// commandProgram is a command as a program.
func (p *programs) commandProgram(c *command.Client, words []string) program.Program {
	keys := keyspace.Keys(words)
	return program.Program{
		DB: c.DB, Keys: syntax.Distinct(keys), Guesses: p.guessesFor(c, words, keys), Replaces: replaces(words),
		Run: func(_ context.Context, s *keyspace.Space) (keyspace.Reply, [][]string, error) {
			reply, err := s.Do(words)
			return reply, nil, err
		},
	}
}

// replaces reports whether a command is likely to put a value whatever is there.
func replaces(words []string) bool {
	switch syntax.Lower(words[0]) {
	case "set":
		for _, word := range words[min(3, len(words)):] {
			switch syntax.Lower(word) {
			case "nx", "ifeq":
				return false
			}
		}
		return true
	case "getset", "setex", "psetex", "append", "setrange", "incr", "decr", "incrby", "decrby", "incrbyfloat",
		"hset", "hmset", "hincrby", "hincrbyfloat", "lpush", "rpush", "sadd", "zadd", "zincrby":
		return true
	}
	return false
}
