package messages

// epochs determines which subscriptions may have missed a message. For each subscription it knows
// the masters that have been connected without a break since the subscription joined. While any
// majority of the masters includes one of these masters, the subscription has missed nothing. A
// master that is connected again does not count: a message in transit may have reached one master
// during its break, and another master during a later break. epochs does no I/O.
type epochs struct {
	// minConnected is the minimum number of connected masters such that every majority includes one
	// of them.
	minConnected     int
	connectedMasters []bool // by master
	// currentEpoch is the epoch of new subscriptions; nil: not created yet.
	currentEpoch *epoch
	set          map[*epoch]bool
}

// epoch holds the subscriptions that joined while the same masters were connected.
type epoch struct {
	connected     []bool // by master: connected without a break since the subscriptions joined
	subscriptions map[*Subscription]bool
}

func newEpochs(masters, minConnected int) *epochs {
	return &epochs{minConnected: minConnected, connectedMasters: make([]bool, masters), set: map[*epoch]bool{}}
}

// masterConnected records that a master is connected.
func (e *epochs) masterConnected(master int) {
	e.connectedMasters[master] = true
	e.startEpoch()
}

// masterDisconnected records that a master is no longer connected. It removes and returns the
// subscriptions that may now miss a message.
func (e *epochs) masterDisconnected(master int) (lostSubscriptions []*Subscription) {
	e.connectedMasters[master] = false
	e.startEpoch()
	for ep := range e.set {
		if ep.connected[master] = false; countTrue(ep.connected) >= e.minConnected {
			continue
		}
		for m := range ep.subscriptions {
			m.epoch = nil
			lostSubscriptions = append(lostSubscriptions, m)
		}
		delete(e.set, ep)
	}
	return lostSubscriptions
}

// startEpoch makes further subscriptions join a new epoch.
func (e *epochs) startEpoch() {
	if e.currentEpoch != nil && len(e.currentEpoch.subscriptions) == 0 {
		delete(e.set, e.currentEpoch)
	}
	e.currentEpoch = nil
}

// join adds a subscription if at least minConnected masters are connected, and reports whether it
// did.
func (e *epochs) join(m *Subscription) bool {
	if countTrue(e.connectedMasters) < e.minConnected {
		return false
	}
	if e.currentEpoch == nil {
		e.currentEpoch = &epoch{connected: append([]bool(nil), e.connectedMasters...), subscriptions: map[*Subscription]bool{}}
		e.set[e.currentEpoch] = true
	}
	m.epoch = e.currentEpoch
	e.currentEpoch.subscriptions[m] = true
	return true
}

// leave removes a subscription.
func (e *epochs) leave(m *Subscription) {
	ep := m.epoch
	if m.epoch = nil; ep == nil {
		return
	}
	delete(ep.subscriptions, m)
	if len(ep.subscriptions) == 0 && ep != e.currentEpoch {
		delete(e.set, ep)
	}
}

// removeAll removes and returns all subscriptions.
func (e *epochs) removeAll() (lostSubscriptions []*Subscription) {
	for ep := range e.set {
		for m := range ep.subscriptions {
			m.epoch = nil
			lostSubscriptions = append(lostSubscriptions, m)
		}
	}
	e.currentEpoch, e.set = nil, map[*epoch]bool{}
	return lostSubscriptions
}

func countTrue(values []bool) (n int) {
	for _, value := range values {
		if value {
			n++
		}
	}
	return n
}
