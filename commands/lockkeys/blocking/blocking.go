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

// Locks lets clients wait for elements. A *quorum.Locker implements it, and documents the errors.
type Locks interface {
	AwaitPop(ctx context.Context, a quorum.BlockedPop) error
}

// Options holds the dependencies of the commands. All must be set.
type Options struct {
	Locks  Locks
	Engine *program.Engine
	// Program returns the program that runs a client's command.
	Program func(c *command.Client, words []string) program.Program
	// WriteOutcome writes the reply of a program.
	WriteOutcome func(c command.Call, db int, outcome program.Outcome)
	// Now returns the wall clock's time.
	Now func() time.Time
}

// Run runs a command that waits. It has the type of command.Command.Run.
func (o Options) Run(c command.Call) {
	req, errReply := parse(syntax.Strings(c.Args), o.Now())
	if errReply != nil {
		program.WriteReply(c.Out, *errReply)
		return
	}
	if req.hasTarget && !o.Engine.SameCell(c.Client.DB, req.keys[0], req.target) {
		program.WriteReply(c.Out, keyspace.ErrorReply(program.CrossCellError(req.keys[0], req.target)))
		return
	}
	waitCtx, stop := c.Client.WaitContext(c.Ctx, req.keys...)
	defer stop()
	keysOnMasters := o.Engine.KeysOnMasters(c.Client.DB, req.keys)
	p := &pop{Options: o, request: req, call: c, keysOnMasters: keysOnMasters, isFirstRead: true}
	err := o.Locks.AwaitPop(waitCtx, quorum.BlockedPop{Keys: p.keysOnMasters, Kind: p.kind, Wait: p.wait, Try: p.try})
	switch {
	case errors.Is(err, quorum.ErrPopTimeout):
		c.Out.WriteNullArray()
	case err != nil:
		c.Out.Fail(err)
	case p.err != nil:
		c.Out.Fail(p.err)
	default:
		o.WriteOutcome(c, c.Client.DB, p.outcome)
	}
}
