package model

import (
	"encoding/binary"
	"slices"
)

// state holds a state of the whole system.
type state struct {
	at      clock
	history uint32
	proxies []uint32
	masters []masterState
	// inFlight holds the messages in flight, in the order in which they were sent.
	inFlight   []message
	results    [maxOps]code // the replies to operations
	startedOps uint16       // the started operations, as bits
	// These fields count the events that a scenario limits.
	callbacks, losses, restarts, otherKeyTaken uint8
	deadAttempts                               []uint32 // attempts that must not have a majority
	catchUp                                    catchUpState
	change                                     changeState
	fence                                      uint8 // the highest fence that a client got
	fenceDisorder                              bool  // a later fence was not higher than an earlier fence
}

type masterState struct {
	cell cellID
	// fence is the fence counter. In the model it stays below 256.
	fence uint8
}

// message describes a message in flight, or an arrived message whose reply the proxy has not
// counted yet.
type message struct {
	proxy, task, round, master uint8
	status                     messageStatus
	op                         opID
	reply                      replyID // only if the message has arrived
}

type messageStatus uint8

const (
	messageSent      messageStatus = iota // in order on its connection
	messageUnordered                      // the connection broke, so it may arrive at any time
	messageArrived                        // the master has executed it
	messageOneWay                         // in order on its connection; the sender expects no reply
)

func (s *state) clone() *state {
	c := *s
	c.proxies = slices.Clone(s.proxies)
	c.masters = slices.Clone(s.masters)
	c.inFlight = slices.Clone(s.inFlight)
	c.deadAttempts = slices.Clone(s.deadAttempts)
	return &c
}

// normalize sorts messages whose order does not matter.
func (s *state) normalize() {
	rank := func(m message) uint64 {
		unordered := uint64(0)
		if m.status == messageUnordered || m.status == messageArrived {
			unordered = 1
		}
		return uint64(m.proxy)<<56 | uint64(m.master)<<48 | unordered<<40
	}
	slices.SortStableFunc(s.inFlight, func(a, b message) int {
		ra, rb := rank(a), rank(b)
		if ra == rb && ra>>40&1 == 1 {
			ra, rb = a.number(), b.number()
			if ra == rb {
				ra, rb = uint64(a.reply), uint64(b.reply)
			}
		}
		switch {
		case ra < rb:
			return -1
		case ra > rb:
			return 1
		}
		return 0
	})
}

// number returns a number for the task, the round, the status and the operation of the message.
func (m message) number() uint64 {
	return uint64(m.task)<<40 | uint64(m.round)<<34 | uint64(m.status)<<32 | uint64(m.op)
}

// encode appends the state to b as bytes. Equal states have equal bytes.
func (s *state) encode(b []byte) []byte {
	b = append(b, byte(s.at), s.callbacks, s.losses, s.restarts, s.otherKeyTaken, byte(len(s.inFlight)), byte(len(s.deadAttempts)), s.fence)
	b = binary.LittleEndian.AppendUint32(b, s.history)
	b = binary.LittleEndian.AppendUint16(b, s.startedOps)
	for _, c := range s.results {
		b = append(b, byte(c))
	}
	for _, p := range s.proxies {
		b = binary.LittleEndian.AppendUint32(b, p)
	}
	for _, m := range s.masters {
		b = append(binary.LittleEndian.AppendUint32(b, uint32(m.cell)), m.fence)
	}
	for _, m := range s.inFlight {
		b = append(b, m.proxy, m.task, m.round, m.master, byte(m.status))
		b = binary.LittleEndian.AppendUint32(b, uint32(m.op))
		b = binary.LittleEndian.AppendUint32(b, uint32(m.reply))
	}
	for _, d := range s.deadAttempts {
		b = binary.LittleEndian.AppendUint32(b, d)
	}
	return s.change.encode(s.catchUp.encode(b))
}

// decode decodes a state from the bytes that encode appended.
func (e *explorer) decode(b []byte) *state {
	s := &state{at: clock(b[0]), callbacks: b[1], losses: b[2], restarts: b[3], otherKeyTaken: b[4], fence: b[7]}
	messages, dead := int(b[5]), int(b[6])
	b = b[8:]
	word := func() uint32 { v := binary.LittleEndian.Uint32(b); b = b[4:]; return v }
	s.history = word()
	s.startedOps = binary.LittleEndian.Uint16(b)
	b = b[2:]
	for i := range s.results {
		s.results[i] = code(b[i])
	}
	b = b[maxOps:]
	s.proxies = make([]uint32, len(e.machines))
	for i := range s.proxies {
		s.proxies[i] = word()
	}
	s.masters = make([]masterState, e.masterCount())
	for i := range s.masters {
		s.masters[i].cell = cellID(word())
		s.masters[i].fence, b = b[0], b[1:]
	}
	s.inFlight = make([]message, messages, messages+8)
	for i := range s.inFlight {
		m := message{proxy: b[0], task: b[1], round: b[2], master: b[3], status: messageStatus(b[4])}
		b = b[5:]
		m.op, m.reply = opID(word()), replyID(word())
		s.inFlight[i] = m
	}
	s.deadAttempts = make([]uint32, dead)
	for i := range s.deadAttempts {
		s.deadAttempts[i] = word()
	}
	s.change.decode(s.catchUp.decode(b))
	return s
}
