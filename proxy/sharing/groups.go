package sharing

import (
	"cmp"
	"slices"
)

// Group is what clients have in common that share connections.
type Group struct {
	// Proto is the protocol that they speak, DB the database that they use.
	Proto, DB int
}

// maxGroups is how many groups there may be. What all of them may cost the upstream is so many times the size of a pool.
const maxGroups = 16

// group is one of the groups, with its connections.
type group struct {
	Group
	places []place
	next   int // place for the next lane
	lanes  int // that are in it
}

// add adds a group. It is called with mu held.
func (p *Pool) add(g Group) *group {
	added := &group{Group: g, places: make([]place, p.size)}
	p.groups[g] = added
	return added
}

// Use is what a group is used for.
type Use struct {
	Group
	// Clients are those who share, Connections those that there are, with those that only finish what they have begun.
	Clients, Connections int
}

// Uses are those of all groups that there are, in order.
func (p *Pool) Uses() (all []Use) {
	p.mu.Lock()
	defer p.mu.Unlock()
	uses := map[Group]*Use{}
	for c := range p.conns {
		if uses[c.group] == nil {
			uses[c.group] = &Use{Group: c.group}
		}
		uses[c.group].Connections++
	}
	for key, g := range p.groups {
		if uses[key] == nil {
			uses[key] = &Use{Group: key}
		}
		uses[key].Clients = g.lanes
	}
	for _, use := range uses {
		all = append(all, *use)
	}
	slices.SortFunc(all, func(a, b Use) int { return cmp.Or(cmp.Compare(a.DB, b.DB), cmp.Compare(a.Proto, b.Proto)) })
	return all
}

// enter gives a place in a group, or nil where there are too many groups of which all are in use.
func (p *Pool) enter(g Group) (in *group, at *place) {
	p.mu.Lock()
	defer p.mu.Unlock()
	in = p.groups[g]
	if in == nil && (len(p.groups) < maxGroups || p.giveUpOne()) {
		in = p.add(g)
	}
	if in == nil {
		return nil, nil
	}
	in.lanes++
	in.next = (in.next + 1) % len(in.places)
	return in, &in.places[in.next]
}

// giveUpOne gives up a group that nobody is in, if there is one, and its connections when they have answered all. It is called with mu
// held.
func (p *Pool) giveUpOne() bool {
	for key, g := range p.groups {
		if g.lanes > 0 || key == p.base {
			continue
		}
		delete(p.groups, key)
		for i := range g.places {
			if c := g.places[i].conn; c != nil {
				c.retire()
			}
		}
		return true
	}
	return false
}

func (p *Pool) leave(g *group) {
	p.mu.Lock()
	defer p.mu.Unlock()
	g.lanes--
}
