package lockkeys

import (
	"context"

	"redlock-proxy/commands/catalog/keys"
	"redlock-proxy/commands/catalog/spec"
	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/command"
	"redlock-proxy/commands/lockkeys/blocking"
	"redlock-proxy/commands/lockkeys/keyspace"
	"redlock-proxy/commands/lockkeys/program"
)

// Commands returns the ordinary commands that run on lock keys.
func (p *Runner) Commands() []*command.Command {
	waits := blocking.Options{
		Locks: p.opts.Locks, Engine: p.Engine, Program: p.Program, Answer: p.answer, Now: p.opts.Now,
	}
	var all []*command.Command
	for _, name := range keyspace.Names() {
		docs, known := command.DocsOf(keyspace.Docs(name)), spec.Find([]byte(name))
		docs.Reads = !known.Does(spec.Writes)
		if _, fixed := known.Keys.Fixed(); fixed || known.Keys.Span.First == 1 {
			docs.Keys = known.Keys.Span
		} else if known.Keys == keys.OfSort {
			docs.Keys = keys.One(1) // STORE names the other key
		}
		run := p.ordinary
		if known.Does(spec.Blocks) {
			run = waits.Run
		}
		c := command.OfRedis(name, run, docs)
		c.Guarded = true
		all = append(all, c)
	}
	return all
}

// ordinary runs an ordinary command on lock keys.
func (p *Runner) ordinary(c command.Call) {
	words := syntax.Strings(c.Args)
	if !p.acquire(c, words) {
		p.Answer(c, p.Program(c.Client, words))
	}
}

// Program returns a command as a program.
func (p *Runner) Program(c *command.Client, words []string) program.Program {
	keys := keyspace.Keys(words)
	return program.Program{
		DB: c.DB, Keys: syntax.Distinct(keys), Guesses: p.guessesFor(c, words, keys), Replaces: replaces(words),
		Run: func(_ context.Context, s *keyspace.Snapshot) (keyspace.Reply, [][]string, error) {
			reply, err := s.Do(words)
			return reply, nil, err
		},
	}
}

// replaces reports whether a command usually writes a value without regard to the old value.
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
