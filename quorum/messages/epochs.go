package messages

// epochs tell which members may have missed something: each has heard some masters without a break
// since it came. As long as these are so many that any majority of the masters has one of them, it
// has missed nothing. A master that is heard again after a break is none of them: of a message that
// was on its way at that time, one master may have had it during the break, and another one, of
// which the connection ended later, after that. It does no I/O.
type epochs struct {
	// need is how many masters any majority has one of.
	need  int
	heard []bool // by master
	// current is that of who comes now; nil: it is still to be made.
	current *epoch
	all     map[*epoch]bool
}

// epoch is members that came while the same masters were heard.
type epoch struct {
	heard   []bool // those of the masters without a break since
	members map[*Membership]bool
}

func newEpochs(masters, need int) *epochs {
	return &epochs{need: need, heard: make([]bool, masters), all: map[*epoch]bool{}}
}

// begins notes that a master is heard.
func (e *epochs) begins(master int) {
	e.heard[master] = true
	e.renew()
}

// ends notes that a master is heard no more, and returns those who may miss something from now on.
// They are members no more.
func (e *epochs) ends(master int) (lost []*Membership) {
	e.heard[master] = false
	e.renew()
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

// renew has who comes from now on be of another epoch.
func (e *epochs) renew() {
	if e.current != nil && len(e.current.members) == 0 {
		delete(e.all, e.current)
	}
	e.current = nil
}

// join has one come, if enough masters are heard.
func (e *epochs) join(m *Membership) bool {
	if count(e.heard) < e.need {
		return false
	}
	if e.current == nil {
		e.current = &epoch{heard: append([]bool(nil), e.heard...), members: map[*Membership]bool{}}
		e.all[e.current] = true
	}
	m.epoch = e.current
	e.current.members[m] = true
	return true
}

// leave unsubscribes one.
func (e *epochs) leave(m *Membership) {
	one := m.epoch
	if m.epoch = nil; one == nil {
		return
	}
	delete(one.members, m)
	if len(one.members) == 0 && one != e.current {
		delete(e.all, one)
	}
}

// everybody gives all members, who are none any more.
func (e *epochs) everybody() (lost []*Membership) {
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
