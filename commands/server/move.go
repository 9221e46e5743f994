package server

import (
	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/command"
	"redlock-proxy/commands/move"
)

// moveSubcommand is PROXY MOVE [BACK | ABORT] [EVENIFOTHERS].
const moveSubcommand = "move"

// proxyMove moves the locks, and replies with the lines of the report when the move has ended. If
// the client disconnects, proxyMove aborts the move.
func (s *Server) proxyMove(c command.Call) {
	order, ok := parseMoveRequest(c.Args[2:])
	switch {
	case !ok:
		c.Out.WriteError(syntax.ErrSyntax)
		return
	case s.opts.NamesNodes != nil:
		c.Out.WriteError(clusterMoveError(order))
		return
	case s.opts.Mover == nil:
		c.Out.WriteError("ERR this proxy cannot move locks: it has no upstream, or no lock-keys; " +
			"run the command on a proxy that has both")
		return
	}
	watched, stop := c.Client.WatchContext(c.Ctx)
	defer stop()
	lines, err := s.opts.Mover.Move(watched, order)
	if err != nil {
		c.Out.WriteError(command.Failure(err))
		return
	}
	c.Out.WriteStrings(lines)
}

// clusterMoveError returns the error for a move from or to a cluster, with an alternative for the
// operator.
func clusterMoveError(order move.Request) string {
	next := "stop the clients that lock, let their locks on the cluster expire, and set lock-keys at all proxies"
	if order.ToUpstream {
		next = "stop the clients that lock, let their locks on the masters expire, and remove lock-keys at all proxies"
	}
	return "ERR cannot move locks: the upstream is a cluster, and the locks of all its nodes would have to move in " +
		"one step; " + next
}

// parseMoveRequest reads the words after MOVE.
func parseMoveRequest(words [][]byte) (moveRequest move.Request, ok bool) {
	for _, word := range words {
		var option *bool
		switch syntax.Lower(word) {
		case "back":
			option = &moveRequest.ToUpstream
		case "abort":
			option = &moveRequest.Abort
		case "evenifothers":
			option = &moveRequest.CloseForeignConns
		}
		if option == nil || *option {
			return moveRequest, false
		}
		*option = true
	}
	return moveRequest, !moveRequest.Abort || !moveRequest.ToUpstream && !moveRequest.CloseForeignConns
}
