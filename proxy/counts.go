package proxy

// Counts holds a server's counters since its start, and the number of its current clients.
type Counts struct {
	// Accepted counts the admitted clients, Refused the clients refused because of MaxClients.
	// AcceptErrors counts the connections that the system could not accept.
	Accepted, Refused, AcceptErrors int64
	// Connected is the number of current clients. Parked is the number of current clients that are
	// idle and have no goroutine.
	Connected, Parked int64
	// BytesToUpstream and BytesToClients count the bytes relayed. They include the proxy's own
	// commands on a client's connection, but not the replies to these commands.
	BytesToUpstream, BytesToClients int64
	// RelayedCommands counts the commands of clients sent to the upstream, except commands that get
	// no reply (CLIENT REPLY OFF).
	RelayedCommands int64
	// InputBytes is the number of bytes held for incomplete commands, beyond the first buffer of
	// each client, and for data kept between commands. InputDisconnects counts how often memory was
	// refused because InputBytes reached its limit. Most refusals disconnect a client.
	InputBytes, InputDisconnects int64
	// UnreadBytes is the number of bytes of replies that clients have not read. UnreadDisconnects
	// counts the clients that were disconnected because UnreadBytes exceeded its limit.
	UnreadBytes, UnreadDisconnects int64
	// MessageBytes is the number of bytes of messages that wait for subscribers of a lock server.
	// MessageDisconnects counts the subscribers that were disconnected because MessageBytes
	// exceeded its limit.
	MessageBytes, MessageDisconnects int64
	// Redirects counts the upstream's replies and messages that redirect clients to other servers.
	// The proxy withheld them.
	Redirects int64
}

// Counts returns the current values.
func (s *Server) Counts() Counts {
	unread, unreadDisconnects := s.shared.common.unread.stats()
	messages, messageDisconnects := s.shared.opts.Table.Messages().Backlog()
	return Counts{
		Accepted: s.shared.common.lastID.Load(), Refused: s.shared.common.refused.Load(), AcceptErrors: s.AcceptErrors(),
		Connected: s.shared.common.clients.Load(), Parked: s.shared.common.parked.Load(),
		BytesToUpstream: s.shared.common.traffic.toUpstream.Load(), BytesToClients: s.shared.common.traffic.toClients.Load(),
		RelayedCommands: s.shared.common.traffic.commands.Load(), Redirects: s.shared.common.redirects.Load(),
		InputBytes: s.shared.common.input.used(), InputDisconnects: s.shared.common.input.refusals.Load(),
		UnreadBytes: unread, UnreadDisconnects: unreadDisconnects,
		MessageBytes: messages, MessageDisconnects: messageDisconnects,
	}
}

// AcceptErrors returns the number of connections that could not be accepted.
func (s *Server) AcceptErrors() int64 { return s.shared.common.acceptErrs.count.Load() }
