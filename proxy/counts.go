package proxy

import "sync/atomic"

// traffic are the bytes relayed. Each count has a line of the processors' caches to itself.
type traffic struct {
	toUpstream atomic.Int64
	_          [56]byte
	toClients  atomic.Int64
	_          [56]byte
}

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
}

// Counts are those of now.
func (s *Server) Counts() Counts {
	return Counts{
		Accepted: s.lastID.Load(), Refused: s.turnedAway.Load(), AcceptErrors: s.AcceptErrors(),
		Connected: s.clients.Load(), Parked: s.parked.Load(),
		ToUpstream: s.traffic.toUpstream.Load(), ToClients: s.traffic.toClients.Load(),
	}
}
