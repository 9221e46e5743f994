package blocking

import (
	"context"
	"errors"
	"time"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/command"
	"redlock-proxy/commands/lockkeys/keyspace"
	"redlock-proxy/commands/lockkeys/program"
	"redlock-proxy/quorum"
)

// Locks have clients wait: a *quorum.Locker, whose method documents the errors.
type Locks interface {
	AwaitArrival(ctx context.Context, a quorum.Arrival) error
}

// Options are what the commands work with. All must be set.
type Options struct {
	Locks  Locks
	Engine *program.Engine
	// Program is a command of a client as a program.
	Program func(c *command.Client, words []string) program.Program
	// Answer answers a client with what came of one.
	Answer func(c command.Call, db int, done program.Outcome)
	// Now is the wall clock.
	Now func() time.Time
}

// Run is a command that waits, for a table of commands.
func (o Options) Run(c command.Call) {
	wanted, failed := parse(syntax.Strings(c.Args), o.Now())
	if failed != nil {
		program.Answer(c.Out, *failed)
		return
	}
	if wanted.target != "" && !o.Engine.Together(c.Client.DB, wanted.keys[0], wanted.target) {
		program.Answer(c.Out, keyspace.Fail(program.SeveralKeys(wanted.keys[0], wanted.target)))
		return
	}
	watched, stop := c.Client.WaitFor(c.Ctx)
	defer stop()
	p := &pop{Options: o, request: wanted, call: c, places: o.Engine.Places(c.Client.DB, wanted.keys), first: true}
	err := o.Locks.AwaitArrival(watched, quorum.Arrival{Keys: p.places, Kind: p.kind, Wait: p.wait, Try: p.try})
	switch {
	case errors.Is(err, quorum.ErrNoArrival):
		c.Out.NullArray()
	case err != nil:
		c.Out.Fail(err)
	case p.err != nil:
		c.Out.Fail(p.err)
	default:
		o.Answer(c, c.Client.DB, p.done)
	}
}
