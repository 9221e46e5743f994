package messages

// epochs determines which members may have missed a message. For each member it knows the masters
// that have been connected without a break since the member joined. While any majority of the
// masters includes one of these, the member has missed nothing. A master that is connected again
// does not count: a message in transit may have reached one master during its break, and another
// master during a later break. It does no I/O.
type epochs struct {
	// need is the number of masters of which any majority includes one.
	need  int
	heard []bool // by master: connected
	// current is the epoch of new members; nil: not created yet.
	current *epoch
	all     map[*epoch]bool
}

// epoch is the set of members that joined while the same masters were connected.
type epoch struct {
	heard   []bool // by master: connected without a break since
	members map[*Subscription]bool
}

func newEpochs(masters, need int) *epochs {
	return &epochs{need: need, heard: make([]bool, masters), all: map[*epoch]bool{}}
}

// masterConnected records that a master is connected.
func (e *epochs) masterConnected(master int) {
	e.heard[master] = true
	e.startNew()
}

// masterDisconnected records that a master is no longer connected. It removes and returns the
// members that may now miss a message.
func (e *epochs) masterDisconnected(master int) (lost []*Subscription) {
	e.heard[master] = false
	e.startNew()
	for one := range e.all {
		if one.heard[master] = false; count(one.heard) >= e.need {
			continue
		}
		for m := range one.members {
			m.epoch = nil
			lost = append(lost, m)
		}
		delete(e.all, one)
	}
	return lost
}

// startNew makes further members join a new epoch.
func (e *epochs) startNew() {
	if e.current != nil && len(e.current.members) == 0 {
		delete(e.all, e.current)
	}
	e.current = nil
}

// join adds a member, if enough masters are connected.
func (e *epochs) join(m *Subscription) bool {
	if count(e.heard) < e.need {
		return false
	}
	if e.current == nil {
		e.current = &epoch{heard: append([]bool(nil), e.heard...), members: map[*Subscription]bool{}}
		e.all[e.current] = true
	}
	m.epoch = e.current
	e.current.members[m] = true
	return true
}

// leave removes a member.
func (e *epochs) leave(m *Subscription) {
	one := m.epoch
	if m.epoch = nil; one == nil {
		return
	}
	delete(one.members, m)
	if len(one.members) == 0 && one != e.current {
		delete(e.all, one)
	}
}

// removeAll removes and returns all members.
func (e *epochs) removeAll() (lost []*Subscription) {
	for one := range e.all {
		for m := range one.members {
			m.epoch = nil
			lost = append(lost, m)
		}
	}
	e.current, e.all = nil, map[*epoch]bool{}
	return lost
}

func count(of []bool) (n int) {
	for _, is := range of {
		if is {
			n++
		}
	}
	return n
}
