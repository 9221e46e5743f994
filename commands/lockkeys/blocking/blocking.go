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

// Locks lets clients wait: a *quorum.Locker, whose methods document the errors.
type Locks interface {
	AwaitPop(ctx context.Context, a quorum.BlockedPop) error
}

// Options are the dependencies of the commands. All must be set.
type Options struct {
	Locks  Locks
	Engine *program.Engine
	// Program returns a command of a client as a program.
	Program func(c *command.Client, words []string) program.Program
	// Answer writes the reply of a program.
	Answer func(c command.Call, db int, done program.Outcome)
	// Now returns the wall clock's time.
	Now func() time.Time
}

// Run runs a command that waits. It has the type of command.Command.Run.
func (o Options) Run(c command.Call) {
	wanted, failed := parse(syntax.Strings(c.Args), o.Now())
	if failed != nil {
		program.Answer(c.Out, *failed)
		return
	}
	if wanted.target != "" && !o.Engine.SameCell(c.Client.DB, wanted.keys[0], wanted.target) {
		program.Answer(c.Out, keyspace.ErrorReply(program.CrossCellError(wanted.keys[0], wanted.target)))
		return
	}
	watched, stop := c.Client.WaitFor(c.Ctx)
	defer stop()
	p := &pop{Options: o, request: wanted, call: c, places: o.Engine.Places(c.Client.DB, wanted.keys), firstRead: true}
	err := o.Locks.AwaitPop(watched, quorum.BlockedPop{Keys: p.places, Kind: p.kind, Wait: p.wait, Try: p.try})
	switch {
	case errors.Is(err, quorum.ErrPopTimeout):
		c.Out.NullArray()
	case err != nil:
		c.Out.Fail(err)
	case p.err != nil:
		c.Out.Fail(p.err)
	default:
		o.Answer(c, c.Client.DB, p.done)
	}
}
