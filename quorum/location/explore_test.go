package location

import (
	"fmt"
	"slices"
	"testing"

	"redlock-proxy/internal/redistest"
)

// This test explores the move. Two clients, each with a proxy of its own, take and release one
// lock, always with the same token. Two movers may stop at any point and continue much later. The
// upstream restarts with its data, with older data, or with none. The masters lose their data once
// their locks have expired. Messages arrive in any order, late, or never. In this test the masters
// are one register, which decides on an era in one step. Other tests explore these decisions
// (internal/model, quorum/guard/reconfig).

// state is the state of a client.
type state uint8

const (
	stateIdle state = iota
	stateAsking
	stateHolding
	stateReleasing
)

// request is a request of a client, which takes or releases the lock. answerSucceeded and
// answerRefused are the replies.
type request uint8

const (
	noRequest request = iota
	requestTake
	requestRelease
	answerSucceeded
	answerRefused
)

// connection leads from a proxy to the upstream.
type connection struct {
	// dialed is set once the proxy has dialed, and open once the upstream has answered.
	dialed, open bool
	// confirmed is set if the masters reported, after the answer, that the locks are at the
	// upstream.
	confirmed bool
	// sentRequest is the request on its way to the upstream, and answer the reply on its way back.
	sentRequest, answer request
}

// proxy is a proxy with one client.
type proxy struct {
	client state
	// mayHoldLock is set if the client received an error: it may have the lock, but does not rely
	// on it.
	mayHoldLock bool
	// era is the latest era that the proxy knows of, and place the location of the locks in that
	// era. pausedEra is the era in which the proxy announced its pause, plus one.
	era       uint8
	place     Place
	pausedEra uint8
	conn      connection
	// sent is the request on its way to the masters, with the era sentEra.
	sent    request
	sentEra uint8
}

// step is the progress of a mover.
type step uint8

const (
	stepIdle         step = iota
	stepEraDecided        // the masters decided on the mover's era
	stepClaimed           // the record names the mover
	stepOthersClosed      // no other process can change anything at the upstream
	stepSourceRead        // the mover has read the locks to copy
	stepCopied            // the mover has sent the locks to the target
	stepMoveDecided       // the masters decided that the locks have moved
)

// write is a write of a mover on its way to the target or the source.
type write struct {
	sent, remove bool
	era, value   uint8
}

// mover is a process that moves the locks.
type mover struct {
	step  step
	era   uint8
	place Place
	value uint8
	// connected is set while the upstream has the mover's connection.
	connected                   bool
	upstreamWrite, mastersWrite write
}

// world is the state of the whole system. A lock is the number of its client plus one; zero means
// none.
type world struct {
	era   uint8
	place Place
	// minPromiseEra is the first era whose promises the masters may still accept.
	minPromiseEra                uint8
	upstream, masters, savedLock uint8
	faults, dataLossCount        uint8
	// recordedPlace is the location in the upstream's record, and recordedEra its era.
	recordedPlace Place
	recordedEra   uint8
	proxies       [2]proxy
	movers        [2]mover
}

// explorer holds the limits of the exploration, and the rules that it omits.
type explorer struct {
	proxies, movers int
	lastEra, faults uint8
	// maxDataLosses limits the number of times that all masters lose their data.
	maxDataLosses uint8
	// placeFromSettings takes the location of the locks from the settings after a data loss.
	// recordOnlyAtRest records a location only when the locks are at rest.
	placeFromSettings, recordOnlyAtRest bool
	// readBeforeAnswer lets a proxy read the masters before the upstream has answered on the
	// connection.
	readBeforeAnswer bool
	// keepConnections ends no connection of a proxy.
	keepConnections bool
	// keepMoverConnections ends no connection of a mover.
	keepMoverConnections bool
	// trustOldPause assumes that a proxy that paused once stays paused.
	trustOldPause bool
	// twoMovers lets two movers with the same era both move the locks.
	twoMovers bool
	// skipPromiseWait does not wait until promises of the previous era have expired.
	skipPromiseWait bool
	// keepExtraLocks keeps a lock at the target that the source does not have.
	keepExtraLocks bool
	// removeBeforeDecision removes a lock from the source before the masters decided that it has
	// moved.
	removeBeforeDecision bool
	// countOtherEras lets the masters count messages of another era.
	countOtherEras bool
}

// currentLock returns the lock at the location that decides.
func (w *world) currentLock() uint8 {
	if w.place.Source() == Upstream {
		return w.upstream
	}
	return w.masters
}

// visitNext visits all worlds that follow w, each with the event that leads to it.
func (x explorer) visitNext(w world, visit func(string, world)) {
	for i := range x.proxies {
		visitEvent := func(event string, t world) { visit(fmt.Sprintf("proxy %d: %s", i, event), t) }
		x.learnEra(w, i, visitEvent)
		x.connect(w, i, visitEvent)
		x.sendRequest(w, i, visitEvent)
		x.runAtUpstream(w, i, visitEvent)
		x.runAtMasters(w, i, visitEvent)
	}
	for i := range x.movers {
		visitEvent := func(event string, t world) { visit(fmt.Sprintf("mover %d: %s", i, event), t) }
		x.move(w, i, visitEvent)
		x.deliverWrites(w, i, visitEvent)
	}
	if w.minPromiseEra < w.era {
		t := w
		t.minPromiseEra = w.era
		visit("promises are too old", t)
	}
	x.restart(w, visit)
	x.loseMastersData(w, visit)
}

// learnEra lets a proxy learn of the era, and announce its pause.
func (x explorer) learnEra(w world, i int, visit func(string, world)) {
	p := &w.proxies[i]
	if p.era != w.era {
		t := w
		t.proxies[i].era, t.proxies[i].place = w.era, w.place
		visit("hears of the era", t)
	}
	if p.place.Moves() && p.pausedEra != p.era+1 && p.conn.sentRequest == noRequest && p.conn.answer == noRequest {
		t := w
		t.proxies[i].pausedEra = p.era + 1
		visit("holds back", t)
	}
	if !p.place.Moves() && p.era > w.recordedEra {
		t := w
		t.recordedPlace, t.recordedEra = p.place, p.era
		visit("records where they are", t)
	}
}

// connect lets a proxy connect, receive its first answer, and read the masters.
func (x explorer) connect(w world, i int, visit func(string, world)) {
	c := &w.proxies[i].conn
	switch {
	case !c.dialed:
		t := w
		t.proxies[i].conn = connection{dialed: true, answer: c.answer}
		visit("connects", t)
	case !c.open:
		t := w
		t.proxies[i].conn.open = true
		visit("is answered", t)
	}
	if c.dialed && (c.open || x.readBeforeAnswer) && !c.confirmed && w.place == Upstream {
		t := w
		p := &t.proxies[i]
		p.conn.confirmed = true
		p.era, p.place = w.era, w.place
		visit("reads the masters", t)
	}
}

// sendRequest lets the proxy's client send a request to the location that the proxy knows.
func (x explorer) sendRequest(w world, i int, visit func(string, world)) {
	p := &w.proxies[i]
	if p.conn.answer != noRequest { // the proxy reads the answer
		p.receive(p.conn.answer)
		p.conn.answer = noRequest
		visit("reads the answer", w)
		return
	}
	if p.conn.sentRequest != noRequest || p.sent != noRequest {
		return
	}
	wanted := requestTake
	if p.client == stateHolding || p.client == stateReleasing {
		wanted = requestRelease
	}
	switch {
	case p.place == Upstream && p.conn.dialed && p.conn.confirmed:
		p.conn.sentRequest = wanted
	case p.place == Masters:
		p.sent, p.sentEra = wanted, p.era
	default:
		return // the client waits
	}
	p.client = stateAsking
	if wanted == requestRelease {
		p.client = stateReleasing
	}
	visit("sends", w)
}

// receive passes an answer to the client.
func (p *proxy) receive(answer request) {
	if p.client == stateAsking && answer == answerSucceeded {
		p.client, p.mayHoldLock = stateHolding, false
		return
	}
	p.client = stateIdle // the lock was released, or not taken
}

// receiveError passes an error to the client. A client that was releasing the lock retries.
func (p *proxy) receiveError() {
	switch p.client {
	case stateAsking:
		p.client, p.mayHoldLock = stateIdle, true
	case stateReleasing:
		p.client = stateHolding
	}
}

// applyRequest returns the lock after a request of client i, and the answer.
func applyRequest(lock uint8, i int, r request) (uint8, request) {
	ownLock := uint8(i + 1)
	switch {
	case r == requestTake && lock == 0:
		return ownLock, answerSucceeded
	case r == requestRelease && lock == ownLock:
		return 0, answerSucceeded
	}
	return lock, answerRefused
}

// runAtUpstream lets the upstream run a proxy's request.
func (x explorer) runAtUpstream(w world, i int, visit func(string, world)) {
	c := &w.proxies[i].conn
	if c.sentRequest == noRequest || !c.open {
		return
	}
	w.upstream, c.answer = applyRequest(w.upstream, i, c.sentRequest)
	c.sentRequest = noRequest
	visit("the upstream carries it out", w)
}

// runAtMasters lets the masters run a proxy's request. A request of another era does not count: at
// most it has the effect of an attempt that is never granted.
func (x explorer) runAtMasters(w world, i int, visit func(string, world)) {
	p := &w.proxies[i]
	switch {
	case p.sent == noRequest:
	case p.sentEra == w.era || x.countOtherEras:
		var answer request
		w.masters, answer = applyRequest(w.masters, i, p.sent)
		p.receive(answer)
		p.sent = noRequest
		visit("the masters vote", w)
	default:
		sent := p.sent
		p.receiveError()
		p.sent = noRequest
		visit("the masters do not vote", w)
		if sent == requestTake {
			w.masters, _ = applyRequest(w.masters, i, requestTake)
			visit("the masters do what does not count", w)
		}
	}
}

// decide begins the next era, in which the locks are at location p.
func (w *world) decide(p Place) {
	w.era, w.place = w.era+1, p
}

// move lets a mover continue.
func (x explorer) move(w world, i int, visit func(string, world)) {
	x.begin(w, i, visit)
	m := &w.movers[i]
	isCurrent := m.era == w.era
	switch m.step {
	case stepEraDecided:
		x.claim(w, i, visit)
	case stepClaimed:
		x.endConnections(w, i, visit)
	case stepOthersClosed:
		if !isCurrent || w.minPromiseEra < w.era && !x.skipPromiseWait {
			return
		}
		m.value = w.upstream
		if m.place == MovingToUpstream {
			m.value = w.masters
		}
		if m.place == MovingToMasters && !m.connected {
			return // the mover cannot read
		}
		m.step = stepSourceRead
		visit("reads", w)
	case stepSourceRead:
		if x.keepExtraLocks && m.value == 0 {
			m.step = stepCopied
			visit("has nothing to write", w)
			return
		}
		pending := write{sent: true, era: m.era, value: m.value}
		if m.place == MovingToMasters && !m.mastersWrite.sent {
			m.mastersWrite = pending
		} else if m.place == MovingToUpstream && !m.upstreamWrite.sent && m.connected {
			m.upstreamWrite = pending
		} else {
			return
		}
		if x.removeBeforeDecision && m.place == MovingToMasters && m.connected {
			m.upstreamWrite = write{sent: true, remove: true}
		}
		m.step = stepCopied // complete once the write arrives
		visit("writes", w)
	case stepCopied:
		if isCurrent && !m.mastersWrite.sent && !m.upstreamWrite.sent && w.era < x.lastEra {
			w.decide(m.place.Target())
			m.step = stepMoveDecided
			visit("has it decided that they have moved", w)
		}
	case stepMoveDecided:
		if m.place == MovingToMasters && m.connected && !m.upstreamWrite.sent {
			m.upstreamWrite = write{sent: true, remove: true}
			m.step = stepIdle
			visit("removes what was moved", w)
		}
	}
}

// begin lets a mover begin a move, abort a move, or propose the same move as another mover.
func (x explorer) begin(w world, i int, visit func(string, world)) {
	m := &w.movers[i]
	if w.era < x.lastEra {
		t := w
		t.movers[i].step = stepIdle
		if w.place.Moves() {
			t.decide(w.place.Source())
		} else {
			t.decide(w.place.MovingPlace())
			t.movers[i].step, t.movers[i].era, t.movers[i].place = stepEraDecided, t.era, t.place
		}
		visit(fmt.Sprintf("decides on place %d", t.place), t)
	}
	if w.place.Moves() && (m.step == stepIdle || m.era != w.era) {
		t := w
		t.movers[i].step, t.movers[i].era, t.movers[i].place = stepEraDecided, w.era, w.place
		visit("had the same decided", t)
	}
}

// claim makes a mover the only mover of its era, unless the record names another mover.
func (x explorer) claim(w world, i int, visit func(string, world)) {
	m := &w.movers[i]
	switch {
	case x.recordOnlyAtRest || x.twoMovers && m.era == w.recordedEra:
		m.step = stepClaimed
	case m.era <= w.recordedEra:
		m.step = stepIdle
	default:
		w.recordedPlace, w.recordedEra, m.step = m.place, m.era, stepClaimed
	}
	visit("claims its era", w)
}

// endConnections ends the connections of all proxies that did not announce their pause, and
// connects the mover.
func (x explorer) endConnections(w world, i int, visit func(string, world)) {
	m := &w.movers[i]
	for k := range w.proxies {
		p := &w.proxies[k]
		hasPaused := p.pausedEra == m.era+1 || x.trustOldPause && p.pausedEra > 0
		if !hasPaused && p.conn.open && !x.keepConnections {
			w.closeConnection(k)
		}
	}
	if other := &w.movers[1-i]; !x.keepMoverConnections {
		other.connected, other.upstreamWrite = false, write{}
	}
	m.connected, m.upstreamWrite = true, write{}
	m.step = stepOthersClosed
	visit("is alone at the upstream", w)
}

// closeConnection ends a proxy's connection. Requests on it are not carried out. A reply may still
// be on its way.
func (w *world) closeConnection(i int) {
	p := &w.proxies[i]
	if p.conn.sentRequest != noRequest {
		p.receiveError()
	}
	p.conn = connection{answer: p.conn.answer}
}

// deliverWrites lets the writes of a mover arrive.
func (x explorer) deliverWrites(w world, i int, visit func(string, world)) {
	if pending := w.movers[i].upstreamWrite; pending.sent {
		t := w
		t.movers[i].upstreamWrite = write{}
		t.upstream = pending.value
		visit("the upstream has it written", t)
	}
	if pending := w.movers[i].mastersWrite; pending.sent {
		t := w
		t.movers[i].mastersWrite = write{}
		if pending.era >= w.minPromiseEra {
			t.masters = pending.value
		}
		visit("the masters have it written", t)
	}
}

// restart lets the upstream save its data, and restart with its current data, with the saved data,
// or with none.
func (x explorer) restart(w world, visit func(string, world)) {
	if w.faults >= x.faults {
		return
	}
	if w.savedLock != w.upstream {
		t := w
		t.savedLock = w.upstream
		visit("the upstream saves", t)
	}
	for _, data := range []uint8{w.upstream, w.savedLock, 0} {
		t := w
		t.faults++
		for i := range t.proxies {
			if t.proxies[i].conn.dialed {
				t.closeConnection(i)
			}
		}
		for i := range t.movers {
			t.movers[i].connected, t.movers[i].upstreamWrite = false, write{}
		}
		t.upstream = data
		if w.place.Source() == Upstream && data != w.upstream {
			t.loseUpstreamLocks()
		}
		visit(fmt.Sprintf("the upstream restarts with %d", data), t)
	}
}

// loseMastersData lets all locks on the masters expire, all masters lose their data, and all
// proxies restart.
func (x explorer) loseMastersData(w world, visit func(string, world)) {
	if w.dataLossCount >= x.maxDataLosses {
		return
	}
	at, _ := placeAfterLoss(nil, EraPlace{w.recordedPlace, int(w.recordedEra)}, false)
	switch {
	case x.placeFromSettings:
		at.Place = Masters
	case at.Era == 0:
		at.Place = Upstream // the locks were never at rest at the masters
	}
	atMasters := w.place.Source() == Masters
	for i := range w.proxies {
		w.closeConnection(i)
		p := &w.proxies[i]
		if p.sent != noRequest {
			p.receiveError()
		}
		if p.conn, p.sent = (connection{}), noRequest; atMasters || p.client != stateHolding {
			p.client, p.mayHoldLock = stateIdle, true
		}
		p.era, p.place, p.pausedEra = uint8(at.Era), at.Place, 0
	}
	w.dataLossCount, w.masters, w.movers = w.dataLossCount+1, 0, [2]mover{}
	w.era, w.place, w.minPromiseEra = uint8(at.Era), at.Place, uint8(at.Era)
	visit(fmt.Sprintf("the masters forget all, and are at place %d", at.Place), w)
}

// loseUpstreamLocks handles the loss of locks that only the upstream had. The same happens without
// a proxy. No client still counts as a holder, and each client may have a lock on which it does not
// rely.
func (w *world) loseUpstreamLocks() {
	for i := range w.proxies {
		p := &w.proxies[i]
		p.conn.answer, p.mayHoldLock = noRequest, true
		if p.sent == noRequest {
			p.client = stateIdle
		}
	}
}

// violation describes a violated invariant, or returns "".
func (w *world) violation() string {
	lock := w.currentLock()
	for i, p := range w.proxies {
		ownLock := uint8(i + 1)
		switch {
		case p.client == stateHolding && lock != ownLock:
			return fmt.Sprintf("client %d holds a lock that is not there", i)
		case p.client == stateIdle && !p.mayHoldLock && p.conn.answer == noRequest && lock == ownLock:
			return fmt.Sprintf("the lock of client %d is back", i)
		}
	}
	if w.proxies[0].client == stateHolding && w.proxies[1].client == stateHolding {
		return "two hold it"
	}
	return ""
}

// predecessor is the world from which a world was first reached, and the event that led to it.
type predecessor struct {
	world world
	event string
}

func (x explorer) explore(limit int) (states int, trace []string) {
	root := world{place: Upstream}
	for i := range root.proxies {
		root.proxies[i].place = Upstream
	}
	for i := range root.movers {
		root.movers[i].place = Upstream
	}
	visited, queue := map[world]predecessor{root: {}}, []world{root}
	for len(queue) > 0 && len(visited) < limit {
		w := queue[0]
		queue = queue[1:]
		x.visitNext(w, func(event string, t world) {
			if _, known := visited[t]; known || trace != nil {
				return
			}
			visited[t] = predecessor{w, event}
			queue = append(queue, t)
			if violation := t.violation(); violation != "" {
				trace = append(trace, violation)
				for at := t; at != root; at = visited[at].world {
					trace = append(trace, visited[at].event)
				}
				slices.Reverse(trace)
			}
		})
		if trace != nil {
			break
		}
	}
	return len(visited), trace
}

func TestExploreMove(t *testing.T) {
	for _, x := range []explorer{
		{proxies: 1, movers: 2, lastEra: 3},
		{proxies: 2, movers: 1, lastEra: 4},
		{proxies: 2, movers: 1, lastEra: 2, faults: 1},
		{proxies: 2, movers: 2, lastEra: 3, faults: 1},
		{proxies: 2, movers: 1, lastEra: 5, maxDataLosses: 1},
	} {
		limit := redistest.StateLimit(200_000, 12_000_000)
		states, trace := x.explore(limit)
		t.Logf("%+v: %d states, complete: %v", x, states, states < limit)
		for _, step := range trace {
			t.Error(step)
		}
	}
}

func TestOmittedMoveRules(t *testing.T) {
	redistest.SkipShort(t)
	for name, x := range map[string]explorer{
		"the masters are read before the upstream answered": {proxies: 1, movers: 1, lastEra: 2, readBeforeAnswer: true},
		"no connection is ended":                            {proxies: 1, movers: 1, lastEra: 2, keepConnections: true},
		"no mover's connection is ended": {proxies: 1, movers: 2, lastEra: 4,
			keepMoverConnections: true},
		"a proxy that held back once does so for good": {proxies: 1, movers: 1, lastEra: 4, trustOldPause: true},
		"an era has two movers":                        {proxies: 1, movers: 2, lastEra: 2, twoMovers: true},
		"the settings say where what was forgotten is": {proxies: 1, movers: 1, lastEra: 4, maxDataLosses: 1,
			placeFromSettings: true},
		"no moving place is recorded": {proxies: 1, movers: 1, lastEra: 4, maxDataLosses: 1,
			recordOnlyAtRest: true},
		"old promises are not waited for": {proxies: 1, movers: 2, lastEra: 4, skipPromiseWait: true},
		"what is where they go stays":     {proxies: 1, movers: 1, lastEra: 4, keepExtraLocks: true},
		"removed before it is decided": {proxies: 1, movers: 1, lastEra: 2,
			removeBeforeDecision: true},
		"the masters count what is of another era": {proxies: 1, movers: 1, lastEra: 4, countOtherEras: true},
	} {
		t.Run(name, func(t *testing.T) {
			states, trace := x.explore(5e6)
			t.Logf("%d states: %v", states, trace)
			if trace == nil {
				t.Error("nothing wrong")
			}
		})
	}
}
