package reconfig

import (
	"fmt"
	"os"
	"testing"

	"redlock-proxy/internal/redistest"
)

// This file explores the decision: two proposers want different masters, with two ballots each,
// from three masters. One of the masters loses its data and is admitted again. Requests arrive in
// any order, late, or never; replies are lost.

const (
	masterCount = 3 // the number of masters
	majority    = 2
)

// acceptor is a master. Its marker is unique.
type acceptor struct {
	promised, accepted, value, marker int
	out                               bool // the master lost its data, and is in quarantine
}

// proposer is a proxy with a ballot. Its next ballot is higher by two.
type proposer struct {
	ballot, value int
	accepting     bool
	expired       bool // more time has passed than a ballot may take
	// marker and seal hold the state of each master when it promised. yes is set if the master
	// accepted.
	promised     [masterCount]bool
	marker, seal [masterCount]int
	yes          [masterCount]bool
}

// request is an accept that has been sent.
type request struct{ proposer, master, ballot, value, marker int }

type world struct {
	masters   [masterCount]acceptor
	proposers [2]proposer
	flight    [6]request
	flying    int
	markers   int
	forgot    bool
	chosen    [2]int // by value
}

// leftOut states which mechanisms an exploration leaves out.
type leftOut struct{ noTime, noMarker, noChoice, noSources, noPromise bool }

func (o leftOut) next(w world, f func(world)) {
	for p := range w.proposers {
		o.propose(w, p, f)
	}
	for i := range w.flying {
		o.deliver(w, i, f)
	}
	for m := range w.masters {
		o.forget(w, m, f)
	}
}

// propose requests a promise, or continues once there are enough, or starts over.
func (o leftOut) propose(w world, p int, f func(world)) {
	one := &w.proposers[p]
	count := 0
	for m := range w.masters {
		if one.promised[m] {
			count++
		}
	}
	if !one.accepting {
		for m, a := range w.masters {
			if a.out || one.promised[m] || a.promised >= one.ballot {
				continue
			}
			t := w
			t.masters[m].promised = one.ballot
			f(t) // the reply is lost
			t.proposers[p].promised[m], t.proposers[p].marker[m], t.proposers[p].seal[m] = true, a.marker,
				a.accepted*10+a.value
			f(t)
		}
		if count >= majority && w.flying+count <= len(w.flight) {
			f(o.send(w, p))
		}
	}
	if one.ballot < 3 {
		t := w
		t.proposers[p] = proposer{ballot: one.ballot + 2, value: p + 1}
		f(t)
	}
}

func (o leftOut) send(w world, p int) world {
	one := &w.proposers[p]
	var seals []Seal
	for m := range w.masters {
		if one.promised[m] && one.seal[m] > 0 {
			seals = append(seals, Seal{Ballot: fmt.Sprint(one.seal[m] / 10),
				Change: Change{Before: 3, Names: []string{fmt.Sprint(one.seal[m] % 10)}}})
		}
	}
	if !o.noChoice {
		change := Choose(seals, Change{Before: 3, Names: []string{fmt.Sprint(p + 1)}})
		one.value = int(change.Names[0][0] - '0')
	}
	one.accepting = true
	for m := range w.masters {
		if one.promised[m] {
			w.flight[w.flying] = request{p, m, one.ballot, one.value, one.marker[m]}
			w.flying++
		}
	}
	return w
}

// deliver applies an accept to its master.
func (o leftOut) deliver(w world, i int, f func(world)) {
	r := w.flight[i]
	w.flying--
	copy(w.flight[i:], w.flight[i+1:])
	w.flight[len(w.flight)-1] = request{}
	a := &w.masters[r.master]
	right := !a.out && (o.noMarker || a.marker == r.marker) && (o.noPromise || a.promised == r.ballot)
	if !right {
		f(w)
		return
	}
	w.markers++
	a.accepted, a.value, a.marker = r.ballot, r.value, w.markers
	f(w) // the reply is lost
	one := &w.proposers[r.proposer]
	if one.ballot != r.ballot || one.expired && !o.noTime {
		return
	}
	one.yes[r.master] = true
	count := 0
	for _, yes := range one.yes {
		if yes {
			count++
		}
	}
	if count >= majority {
		w.chosen[r.value-1] = 1
	}
	f(w)
}

// forget lets a master lose its data, once; or lets it vote again, after which earlier ballots have
// expired.
func (o leftOut) forget(w world, m int, f func(world)) {
	a := &w.masters[m]
	switch {
	case !w.forgot:
		w.forgot = true
		*a = acceptor{out: true}
		f(w)
	case a.out:
		sources := 0
		for i, other := range w.masters {
			if i != m && (other.accepted == 0 || o.noSources) {
				sources++
			}
		}
		if sources < majority {
			return
		}
		w.markers++
		*a = acceptor{marker: w.markers}
		for p := range w.proposers {
			w.proposers[p].expired = true
		}
		f(w)
	}
}

// violation returns a violation: two changes were decided, or one was and the former masters still
// have a majority.
func (w world) violation() string {
	votes := 0
	for _, a := range w.masters {
		if !a.out && a.accepted == 0 {
			votes++
		}
	}
	switch {
	case w.chosen[0]+w.chosen[1] == 2:
		return "two are decided"
	case w.chosen[0]+w.chosen[1] == 1 && votes >= majority:
		return "one is decided, and a majority votes as before"
	}
	return ""
}

func (o leftOut) explore(limit int) (states int, found string) {
	root := world{proposers: [2]proposer{{ballot: 1, value: 1}, {ballot: 2, value: 2}}}
	seen, queue := map[world]bool{root: true}, []world{root}
	for len(queue) > 0 && len(seen) < limit {
		w := queue[0]
		queue = queue[1:]
		o.next(w, func(t world) {
			if found == "" {
				found = t.violation()
			}
			if !seen[t] {
				seen[t] = true
				queue = append(queue, t)
			}
		})
		if found != "" {
			break
		}
	}
	return len(seen), found
}

func TestDecisionExplored(t *testing.T) {
	limit := redistest.Sampled(200_000)
	if os.Getenv("REDLOCK_MODEL") != "" {
		limit = 4_000_000
	}
	states, found := leftOut{}.explore(limit)
	t.Logf("%d states, complete: %v", states, states < limit)
	if found != "" {
		t.Error(found)
	}
}

func TestEachMechanismOfTheDecisionIsNeeded(t *testing.T) {
	redistest.SkipShort(t)
	for name, o := range map[string]leftOut{
		"ballots count for any time":                          {noTime: true},
		"what was accepted before is not asked":               {noChoice: true},
		"sealed masters let others vote again":                {noSources: true},
		"accepted whatever was promised and under any marker": {noMarker: true, noPromise: true}, // either one suffices
	} {
		t.Run(name, func(t *testing.T) {
			states, found := o.explore(3e6)
			t.Logf("%d states: %s", states, found)
			if found == "" {
				t.Error("nothing wrong")
			}
		})
	}
}
