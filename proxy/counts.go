package proxy

// Counts holds the counters of all servers with the same ProxyState since the start, and the
// numbers of their current clients.
type Counts struct {
	// Accepted counts the admitted clients, Refused the clients refused because of MaxClients.
	// AcceptErrors counts the connections that the system could not accept.
	Accepted, Refused, AcceptErrors int64
	// Connected is the number of current clients. Parked is the number of current clients that are
	// idle and have no goroutine.
	Connected, Parked int64
	// BytesToUpstream and BytesToClients count the bytes relayed. They include internal commands on
	// a client's connection, but not the replies to these commands.
	BytesToUpstream, BytesToClients int64
	// RelayedCommands counts the commands of clients sent to the upstream, except commands that get
	// no reply (CLIENT REPLY OFF).
	RelayedCommands int64
	// InputBytes is the number of bytes held for incomplete commands, beyond the first buffer of
	// each client, and for data kept between commands. InputRefusals counts how often memory was
	// refused because InputBytes reached its limit. Most refusals disconnect a client.
	InputBytes, InputRefusals int64
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
	unread, unreadDisconnects := s.serverState.proxyState.unreadReplies.stats()
	messages, messageDisconnects := s.serverState.opts.Table.Messages().Backlog()
	return Counts{
		Accepted: s.serverState.proxyState.lastID.Load(), Refused: s.serverState.proxyState.refusedClients.Load(), AcceptErrors: s.AcceptErrors(),
		Connected: s.serverState.proxyState.clients.Load(), Parked: s.serverState.proxyState.parkedClients.Load(),
		BytesToUpstream: s.serverState.proxyState.traffic.bytesToUpstream.Load(), BytesToClients: s.serverState.proxyState.traffic.bytesToClients.Load(),
		RelayedCommands: s.serverState.proxyState.traffic.commands.Load(), Redirects: s.serverState.proxyState.redirects.Load(),
		InputBytes: s.serverState.proxyState.input.used(), InputRefusals: s.serverState.proxyState.input.refusals.Load(),
		UnreadBytes: unread, UnreadDisconnects: unreadDisconnects,
		MessageBytes: messages, MessageDisconnects: messageDisconnects,
	}
}

// AcceptErrors returns the number of connections that could not be accepted.
func (s *Server) AcceptErrors() int64 { return s.serverState.proxyState.acceptErrs.count.Load() }
