package model

import (
	"encoding/binary"
	"slices"
)

// state is one of everything.
type state struct {
	at      clock
	history uint32
	proxies []uint32
	masters []masterState
	// flight are the messages under way, in the order in which they were sent.
	flight []message
	told   [maxOps]code
	began  uint16 // operations
	// what happened so far of that which is bounded
	fires, losses, restarts uint8
	dead                    []uint32 // attempts
	target                  catching
	change                  changing
	fence                   uint8 // the last that was told
	disordered              bool  // one that was told later is not higher
}

// masterState is a master.
type masterState struct {
	cell cellID
	// fence is the counter's number; none is here above 255.
	fence uint8
}

// message is one under way, or one that has reached its master and whose answer has not
// been counted.
type message struct {
	proxy, task, round, master uint8
	how                        how
	op                         opID
	reply                      replyID // if it has arrived
}

// how is how a message is under way.
type how uint8

const (
	sent    how = iota // on its connection, after those sent before
	stray              // its connection broke, or nothing waits for an answer
	arrived            // its master has done it
	told               // nothing waits for an answer
)

func (s *state) clone() *state {
	c := *s
	c.proxies = slices.Clone(s.proxies)
	c.masters = slices.Clone(s.masters)
	c.flight = slices.Clone(s.flight)
	c.dead = slices.Clone(s.dead)
	return &c
}

// tidy puts messages whose order means nothing in one order.
func (s *state) tidy() {
	rank := func(m message) uint64 {
		loose := uint64(0)
		if m.how == stray || m.how == arrived {
			loose = 1
		}
		return uint64(m.proxy)<<56 | uint64(m.master)<<48 | loose<<40
	}
	slices.SortStableFunc(s.flight, func(a, b message) int {
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

// number tells all of a message but its reply.
func (m message) number() uint64 {
	return uint64(m.task)<<40 | uint64(m.round)<<34 | uint64(m.how)<<32 | uint64(m.op)
}

// text is the state as bytes, the same for the same.
func (s *state) text(b []byte) []byte {
	b = append(b, byte(s.at), s.fires, s.losses, s.restarts, byte(len(s.flight)), byte(len(s.dead)), s.fence)
	b = binary.LittleEndian.AppendUint32(b, s.history)
	b = binary.LittleEndian.AppendUint16(b, s.began)
	for _, c := range s.told {
		b = append(b, byte(c))
	}
	for _, p := range s.proxies {
		b = binary.LittleEndian.AppendUint32(b, p)
	}
	for _, m := range s.masters {
		b = append(binary.LittleEndian.AppendUint32(b, uint32(m.cell)), m.fence)
	}
	for _, m := range s.flight {
		b = append(b, m.proxy, m.task, m.round, m.master, byte(m.how))
		b = binary.LittleEndian.AppendUint32(b, uint32(m.op))
		b = binary.LittleEndian.AppendUint32(b, uint32(m.reply))
	}
	for _, d := range s.dead {
		b = binary.LittleEndian.AppendUint32(b, d)
	}
	return s.change.text(s.target.text(b))
}

// read is the state of a text.
func (e *explorer) read(b []byte) *state {
	s := &state{at: clock(b[0]), fires: b[1], losses: b[2], restarts: b[3], fence: b[6]}
	messages, dead := int(b[4]), int(b[5])
	b = b[7:]
	word := func() uint32 { v := binary.LittleEndian.Uint32(b); b = b[4:]; return v }
	s.history = word()
	s.began = binary.LittleEndian.Uint16(b)
	b = b[2:]
	for i := range s.told {
		s.told[i] = code(b[i])
	}
	b = b[maxOps:]
	s.proxies = make([]uint32, len(e.machines))
	for i := range s.proxies {
		s.proxies[i] = word()
	}
	s.masters = make([]masterState, e.total())
	for i := range s.masters {
		s.masters[i].cell = cellID(word())
		s.masters[i].fence, b = b[0], b[1:]
	}
	s.flight = make([]message, messages, messages+8)
	for i := range s.flight {
		m := message{proxy: b[0], task: b[1], round: b[2], master: b[3], how: how(b[4])}
		b = b[5:]
		m.op, m.reply = opID(word()), replyID(word())
		s.flight[i] = m
	}
	s.dead = make([]uint32, dead)
	for i := range s.dead {
		s.dead[i] = word()
	}
	s.change.read(s.target.read(b))
	return s
}
