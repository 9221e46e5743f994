package server

import (
	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/command"
	"redlock-proxy/commands/move"
)

// moveSubcommand is PROXY MOVE [BACK | ABORT] [EVENIFOTHERS].
const moveSubcommand = "move"

// proxyMove moves the locks, and replies with the lines of the report when the move has ended. If
// the client leaves, it aborts the move.
func (s *Server) proxyMove(c command.Call) {
	order, ok := moveOrder(c.Args[2:])
	switch {
	case !ok:
		c.Out.Error(syntax.ErrSyntax)
		return
	case s.opts.NamesNodes != nil:
		c.Out.Error("ERR cannot move locks: the upstream is a cluster, and the locks of all its nodes would have to move " +
			"in one step; let the locks on the cluster expire before you set lock-keys")
		return
	case s.opts.Mover == nil:
		c.Out.Error("ERR this proxy cannot move locks: it has no upstream, or no lock-keys; " +
			"run the command on a proxy that has both")
		return
	}
	watched, stop := c.Client.WatchContext(c.Ctx)
	defer stop()
	result, err := s.opts.Mover.Move(watched, order, nil)
	if err != nil {
		c.Out.Error(command.Failure(err))
		return
	}
	c.Out.Strings(result.Lines())
}

// moveOrder reads the words after MOVE.
func moveOrder(words [][]byte) (order move.Request, ok bool) {
	for _, word := range words {
		var option *bool
		switch syntax.Lower(word) {
		case "back":
			option = &order.Back
		case "abort":
			option = &order.Abort
		case "evenifothers":
			option = &order.CloseOthers
		}
		if option == nil || *option {
			return order, false
		}
		*option = true
	}
	return order, !order.Abort || !order.Back && !order.CloseOthers
}
