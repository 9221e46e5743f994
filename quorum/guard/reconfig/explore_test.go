package reconfig

import (
	"fmt"
	"testing"

	"redlock-proxy/internal/redistest"
)

// This file explores all courses of a decision. Two proposers propose different sets of masters to
// three masters, with two ballots each. One master loses its data and is admitted again. Requests
// arrive in any order, late, or never, and replies get lost.

const (
	masterCount = 3
	majority    = 2
)

// acceptor models a master. Each marker has a different number.
type acceptor struct {
	promisedBallot, acceptedBallot, value, marker int
	quarantined                                   bool // the master lost its data, and is in quarantine
}

// proposer models a proxy with a ballot. Its next ballot is higher by two.
type proposer struct {
	ballot, value int
	accepting     bool
	expired       bool // more time has passed than a ballot may take
	// promised is set if the master promised; marker and seal hold its state at that time.
	// hasAccepted is set if the proposer knows that the master accepted.
	promised     [masterCount]bool
	marker, seal [masterCount]int
	hasAccepted  [masterCount]bool
}

// request models an accept request in flight.
type request struct{ proposer, master, ballot, value, marker int }

type world struct {
	masters       [masterCount]acceptor
	proposers     [2]proposer
	inFlight      [6]request
	inFlightCount int
	lastMarker    int
	dataLost      bool
	chosenValues  [2]int // 1 at the index value-1 if the value was decided
}

// omissions selects the mechanisms that an exploration omits.
type omissions struct{ noTimeLimit, noMarkerCheck, noChoice, anySources, noPromiseCheck bool }

// visitNext visits all worlds that follow w.
func (o omissions) visitNext(w world, visit func(world)) {
	for p := range w.proposers {
		o.propose(w, p, visit)
	}
	for i := range w.inFlightCount {
		o.deliver(w, i, visit)
	}
	for m := range w.masters {
		o.loseData(w, m, visit)
	}
}

// propose requests a promise, sends the accept requests once a majority has promised, or starts
// over with the next ballot.
func (o omissions) propose(w world, p int, visit func(world)) {
	pr := &w.proposers[p]
	count := 0
	for m := range w.masters {
		if pr.promised[m] {
			count++
		}
	}
	if !pr.accepting {
		for m, a := range w.masters {
			if a.quarantined || pr.promised[m] || a.promisedBallot >= pr.ballot {
				continue
			}
			t := w
			t.masters[m].promisedBallot = pr.ballot
			visit(t) // the reply is lost
			t.proposers[p].promised[m], t.proposers[p].marker[m], t.proposers[p].seal[m] = true, a.marker,
				a.acceptedBallot*10+a.value
			visit(t)
		}
		if count >= majority && w.inFlightCount+count <= len(w.inFlight) {
			visit(o.send(w, p))
		}
	}
	if pr.ballot < 3 {
		t := w
		t.proposers[p] = proposer{ballot: pr.ballot + 2, value: p + 1}
		visit(t)
	}
}

func (o omissions) send(w world, p int) world {
	pr := &w.proposers[p]
	var seals []Seal
	for m := range w.masters {
		if pr.promised[m] && pr.seal[m] > 0 {
			seals = append(seals, Seal{Ballot: fmt.Sprint(pr.seal[m] / 10),
				Change: Change{PreviousMasterCount: 3, Names: []string{fmt.Sprint(pr.seal[m] % 10)}}})
		}
	}
	if !o.noChoice {
		change := Choose(seals, Change{PreviousMasterCount: 3, Names: []string{fmt.Sprint(p + 1)}})
		pr.value = int(change.Names[0][0] - '0')
	}
	pr.accepting = true
	for m := range w.masters {
		if pr.promised[m] {
			w.inFlight[w.inFlightCount] = request{p, m, pr.ballot, pr.value, pr.marker[m]}
			w.inFlightCount++
		}
	}
	return w
}

// deliver applies an accept request to its master.
func (o omissions) deliver(w world, i int, visit func(world)) {
	r := w.inFlight[i]
	w.inFlightCount--
	copy(w.inFlight[i:], w.inFlight[i+1:])
	w.inFlight[len(w.inFlight)-1] = request{}
	a := &w.masters[r.master]
	valid := !a.quarantined && (o.noMarkerCheck || a.marker == r.marker) && (o.noPromiseCheck || a.promisedBallot == r.ballot)
	if !valid {
		visit(w)
		return
	}
	w.lastMarker++
	a.acceptedBallot, a.value, a.marker = r.ballot, r.value, w.lastMarker
	visit(w) // the reply is lost
	pr := &w.proposers[r.proposer]
	if pr.ballot != r.ballot || pr.expired && !o.noTimeLimit {
		return
	}
	pr.hasAccepted[r.master] = true
	count := 0
	for _, accepted := range pr.hasAccepted {
		if accepted {
			count++
		}
	}
	if count >= majority {
		w.chosenValues[r.value-1] = 1
	}
	visit(w)
}

// loseData lets one master lose its data, or ends its quarantine. When the quarantine ends, all
// earlier ballots have expired.
func (o omissions) loseData(w world, m int, visit func(world)) {
	a := &w.masters[m]
	switch {
	case !w.dataLost:
		w.dataLost = true
		*a = acceptor{quarantined: true}
		visit(w)
	case a.quarantined:
		sources := 0
		for i, other := range w.masters {
			if i != m && (other.acceptedBallot == 0 || o.anySources) {
				sources++
			}
		}
		if sources < majority {
			return
		}
		w.lastMarker++
		*a = acceptor{marker: w.lastMarker}
		for p := range w.proposers {
			w.proposers[p].expired = true
		}
		visit(w)
	}
}

// violation returns a text if two changes were decided, or if one was decided and a majority of the
// former masters still votes.
func (w world) violation() string {
	votes := 0
	for _, a := range w.masters {
		if !a.quarantined && a.acceptedBallot == 0 {
			votes++
		}
	}
	switch {
	case w.chosenValues[0]+w.chosenValues[1] == 2:
		return "two are decided"
	case w.chosenValues[0]+w.chosenValues[1] == 1 && votes >= majority:
		return "one is decided, and a majority votes as before"
	}
	return ""
}

func (o omissions) explore(limit int) (states int, violation string) {
	root := world{proposers: [2]proposer{{ballot: 1, value: 1}, {ballot: 2, value: 2}}}
	visited, queue := map[world]bool{root: true}, []world{root}
	for len(queue) > 0 && len(visited) < limit {
		w := queue[0]
		queue = queue[1:]
		o.visitNext(w, func(t world) {
			if violation == "" {
				violation = t.violation()
			}
			if !visited[t] {
				visited[t] = true
				queue = append(queue, t)
			}
		})
		if violation != "" {
			break
		}
	}
	return len(visited), violation
}

func TestExploreDecision(t *testing.T) {
	limit := redistest.StateLimit(200_000, 4_000_000)
	states, found := omissions{}.explore(limit)
	t.Logf("%d states, complete: %v", states, states < limit)
	if found != "" {
		t.Error(found)
	}
}

func TestOmittedDecisionMechanisms(t *testing.T) {
	redistest.SkipShort(t)
	// The marker check and the promise check are each sufficient, so the last entry omits both.
	for name, o := range map[string]omissions{
		"ballots count for any time":                          {noTimeLimit: true},
		"what was accepted before is not asked":               {noChoice: true},
		"sealed masters let others vote again":                {anySources: true},
		"accepted whatever was promised and under any marker": {noMarkerCheck: true, noPromiseCheck: true},
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
