package server

import (
	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/command"
	"redlock-proxy/commands/move"
)

// moveSubcommand is PROXY MOVE [BACK | ABORT] [EVENIFOTHERS].
const moveSubcommand = "move"

// proxyMove moves the locks, and answers when that is over: with a line for each thing to know. A
// client that leaves has it given up.
func (s *Server) proxyMove(c command.Call) {
	order, ok := moveOrder(c.Args[2:])
	switch {
	case !ok:
		c.Out.Error(syntax.ErrSyntax)
		return
	case s.opts.Mover == nil:
		c.Out.Error("ERR the locks of this proxy cannot be moved: it has no upstream, or no lock keys")
		return
	}
	watched, stop := c.Client.WatchFor(c.Ctx)
	defer stop()
	result, err := s.opts.Mover.Move(watched, order, nil)
	if err != nil {
		c.Out.Error(command.Failure(err))
		return
	}
	c.Out.Strings(result.Lines())
}

// moveOrder reads the words after MOVE.
func moveOrder(words [][]byte) (order move.Order, ok bool) {
	for _, word := range words {
		var given *bool
		switch syntax.Lower(word) {
		case "back":
			given = &order.Back
		case "abort":
			given = &order.Abort
		case "evenifothers":
			given = &order.EvenIfOthers
		}
		if given == nil || *given {
			return order, false
		}
		*given = true
	}
	return order, !order.Abort || !order.Back && !order.EvenIfOthers
}
