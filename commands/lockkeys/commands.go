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
	blockingOptions := blocking.Options{
		Locks: p.opts.Locks, Engine: p.Engine, Program: p.Program, WriteOutcome: p.writeOutcome, Now: p.opts.Now,
	}
	var list []*command.Command
	for _, name := range keyspace.Names() {
		docs, redisCommand := command.DocsOf(keyspace.Docs(name)), spec.Find([]byte(name))
		docs.Reads = !redisCommand.HasAny(spec.Writes)
		if _, fixed := redisCommand.Keys.FixedSpan(); fixed || redisCommand.Keys.Span.First == 1 {
			docs.Keys = redisCommand.Keys.Span
		} else if redisCommand.Keys == keys.OfSort {
			docs.Keys = keys.SpanOfOne(1) // STORE names the other key
		}
		run := p.runOrdinaryCommand
		if redisCommand.HasAny(spec.Blocks) {
			run = blockingOptions.Run
		}
		c := command.NewRedisCommand(name, run, docs)
		c.RequiresLogin = true
		list = append(list, c)
	}
	return list
}

// runOrdinaryCommand runs an ordinary command on lock keys.
func (p *Runner) runOrdinaryCommand(c command.Call) {
	words := syntax.Strings(c.Args)
	if !p.acquire(c, words) {
		p.RunProgram(c, p.Program(c.Client, words))
	}
}

// Program returns the program that runs a command.
func (p *Runner) Program(c *command.Client, words []string) program.Program {
	keys := keyspace.Keys(words)
	return program.Program{
		DB: c.DB, Keys: syntax.Distinct(keys), Guesses: p.guessesFor(c, words, keys),
		UsuallyWrites: usuallyWrites(words),
		Run: func(_ context.Context, s *keyspace.Snapshot) (keyspace.Reply, [][]string, error) {
			reply, err := s.Do(words)
			return reply, nil, err
		},
	}
}

// usuallyWrites reports whether a command usually writes, regardless of the old value.
func usuallyWrites(words []string) bool {
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
