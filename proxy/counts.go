package proxy

// Counts are what a server has counted since it was made, and its clients of now.
type Counts struct {
	// Accepted are the clients that were admitted, Refused those turned away because there
	// were as many as MaxClients, AcceptErrors those that the system could not give.
	Accepted, Refused, AcceptErrors int64
	// Connected are the clients of now, Parked those of them that are quiet and cost no
	// goroutine.
	Connected, Parked int64
	// ToUpstream and ToClients are the bytes relayed. What the proxy asks an upstream for itself
	// on a client's connection counts as sent, and its answer does not.
	ToUpstream, ToClients int64
	// Relayed are the commands of clients sent to the upstream, but for those that are not answered
	// (CLIENT REPLY OFF).
	Relayed int64
	// HeldInput are the bytes that are held of commands that are not complete, beyond the first of
	// each client, and kept between commands; RefusedInput counts the clients that were sent away
	// because there were too many.
	HeldInput, RefusedInput int64
	// Unread are the bytes of replies that wait for clients to read; CutUnread counts the clients
	// that were disconnected because there were too many.
	Unread, CutUnread int64
	// Messages are the bytes of messages that wait for subscribers of a lock server; CutMessages
	// counts the subscribers that were disconnected because there were too many.
	Messages, CutMessages int64
	// Detours are replies and messages of the upstream that led clients to other servers, and did
	// not reach them.
	Detours int64
}

// Counts are those of now.
func (s *Server) Counts() Counts {
	unread, cut := s.shared.unread.now()
	messages, cutMessages := s.shared.opts.Table.Messages().Backlog()
	return Counts{
		Accepted: s.shared.lastID.Load(), Refused: s.turnedAway.Load(), AcceptErrors: s.AcceptErrors(),
		Connected: s.clients.Load(), Parked: s.shared.parked.Load(),
		ToUpstream: s.shared.traffic.toUpstream.Load(), ToClients: s.shared.traffic.toClients.Load(),
		Relayed: s.shared.traffic.commands.Load(), Detours: s.shared.detours.Load(),
		HeldInput: s.shared.input.now(), RefusedInput: s.shared.input.refused.Load(), Unread: unread, CutUnread: cut,
		Messages: messages, CutMessages: cutMessages,
	}
}

// AcceptErrors counts the connections that could not be accepted.
func (s *Server) AcceptErrors() int64 { return s.refused.count.Load() }
