package messages

// epochs determines which members (subscriptions) may have missed a message. For each member it
// knows the masters that have been connected without a break since the member joined. While any
// majority of the masters includes one of these masters, the member has missed nothing. A master
// that is connected again does not count: a message in transit may have reached one master during
// its break, and another master during a later break. epochs does no I/O.
type epochs struct {
	// minConnected is the minimum number of connected masters such that every majority includes one
	// of them.
	minConnected int
	connected    []bool // by master
	// current is the epoch of new members; nil: not created yet.
	current *epoch
	set     map[*epoch]bool
}

// epoch holds the members that joined while the same masters were connected.
type epoch struct {
	connected []bool // by master: connected without a break since the members joined
	members   map[*Subscription]bool
}

func newEpochs(masters, need int) *epochs {
	return &epochs{minConnected: need, connected: make([]bool, masters), set: map[*epoch]bool{}}
}

// masterConnected records that a master is connected.
func (e *epochs) masterConnected(master int) {
	e.connected[master] = true
	e.startNew()
}

// masterDisconnected records that a master is no longer connected. It removes and returns the
// members that may now miss a message.
func (e *epochs) masterDisconnected(master int) (affected []*Subscription) {
	e.connected[master] = false
	e.startNew()
	for ep := range e.set {
		if ep.connected[master] = false; countTrue(ep.connected) >= e.minConnected {
			continue
		}
		for m := range ep.members {
			m.epoch = nil
			affected = append(affected, m)
		}
		delete(e.set, ep)
	}
	return affected
}

// startNew makes further members join a new epoch.
func (e *epochs) startNew() {
	if e.current != nil && len(e.current.members) == 0 {
		delete(e.set, e.current)
	}
	e.current = nil
}

// join adds a member if at least need masters are connected, and reports whether it did.
func (e *epochs) join(m *Subscription) bool {
	if countTrue(e.connected) < e.minConnected {
		return false
	}
	if e.current == nil {
		e.current = &epoch{connected: append([]bool(nil), e.connected...), members: map[*Subscription]bool{}}
		e.set[e.current] = true
	}
	m.epoch = e.current
	e.current.members[m] = true
	return true
}

// leave removes a member.
func (e *epochs) leave(m *Subscription) {
	ep := m.epoch
	if m.epoch = nil; ep == nil {
		return
	}
	delete(ep.members, m)
	if len(ep.members) == 0 && ep != e.current {
		delete(e.set, ep)
	}
}

// removeAll removes and returns all members.
func (e *epochs) removeAll() (affected []*Subscription) {
	for ep := range e.set {
		for m := range ep.members {
			m.epoch = nil
			affected = append(affected, m)
		}
	}
	e.current, e.set = nil, map[*epoch]bool{}
	return affected
}

func countTrue(values []bool) (n int) {
	for _, value := range values {
		if value {
			n++
		}
	}
	return n
}
