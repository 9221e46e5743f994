package location

import (
	"fmt"
	"os"
	"slices"
	"testing"

	"redlock-proxy/internal/redistest"
)

// This test explores the move. Two clients, each with a proxy of its own, take and release one
// lock, always with the same token. Two movers may stop at any point and continue much later. The
// upstream restarts with its data, with older data, or with none. The masters forget everything
// once their locks have expired. Messages arrive in any order, late, or never. The masters are one
// register in this test, whose eras are decided at once. Other tests explore these decisions
// (internal/model, quorum/guard/reconfig).

// state is the state of a client.
type state uint8

const (
	idle state = iota
	asking
	holding
	releasing
)

// request is a request of a client, which takes or releases the lock. done and refused are the
// replies.
type request uint8

const (
	nothing request = iota
	take
	release
	done
	refused
)

// connection leads from a proxy to the upstream.
type connection struct {
	// dialed is set by the proxy. open is set by the upstream, which then answers.
	dialed, open bool
	// read is set if the masters were read after that, and reported that the locks are at the
	// upstream.
	read bool
	// sent is on its way to the upstream, and answer on its way back.
	sent, answer request
}

// proxy is a proxy with one client.
type proxy struct {
	client state
	// unsure is set if the client received an error: it may have the lock, but does not rely on it.
	unsure bool
	// era is the latest era that the proxy knows of, and place where the locks are in it.
	// heldBackIn is the era in which the proxy announced its pause, plus one.
	era        uint8
	place      Place
	heldBackIn uint8
	conn       connection
	// sent is on its way to the masters, with the era sentIn.
	sent   request
	sentIn uint8
}

// step is the progress of a mover.
type step uint8

const (
	rests     step = iota
	began          // its era is decided
	claimed        // the record names the mover
	exclusive      // no other process can change anything at the upstream
	reads          // it has read the locks to copy
	copied         // it has written them
	ended          // the masters decided that the locks have moved
)

// write is a write of a mover under way.
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
	connected             bool
	toUpstream, toMasters write
}

// world is the state of the whole system. A lock is the number of its client plus one; zero: none.
type world struct {
	era   uint8
	place Place
	// firstHeededEra is the first era whose promises the masters may still heed.
	firstHeededEra           uint8
	upstream, masters, saved uint8
	faults, forgetCount      uint8
	// recorded is the place in the upstream's record, and recordedIn its era.
	recorded   Place
	recordedIn uint8
	proxies    [2]proxy
	movers     [2]mover
}

// explorer has the limits of the exploration, and the rules that it leaves out.
type explorer struct {
	proxies, movers int
	lastEra, faults uint8
	// maxForgets limits how often all masters forget everything.
	maxForgets uint8
	// placeFromSettings then takes the place of the locks from the settings. recordOnlyAtRest
	// records a place only when the locks are at rest.
	placeFromSettings, recordOnlyAtRest bool
	// readBeforeAnswer lets a proxy read the masters before the upstream has answered on the
	// connection.
	readBeforeAnswer bool
	// keepConnections ends no connection of a proxy.
	keepConnections bool
	// keepMoverConnections ends no connection of a mover.
	keepMoverConnections bool
	// trustOldHoldback assumes that a proxy that paused once does so for good.
	trustOldHoldback bool
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

// currentLock returns the lock at the place that decides.
func (w *world) currentLock() uint8 {
	if w.place.Source() == Upstream {
		return w.upstream
	}
	return w.masters
}

func (x explorer) next(w world, f func(string, world)) {
	for i := range x.proxies {
		say := func(what string, t world) { f(fmt.Sprintf("proxy %d: %s", i, what), t) }
		x.hear(w, i, say)
		x.connect(w, i, say)
		x.ask(w, i, say)
		x.serve(w, i, say)
		x.vote(w, i, say)
	}
	for i := range x.movers {
		say := func(what string, t world) { f(fmt.Sprintf("mover %d: %s", i, what), t) }
		x.move(w, i, say)
		x.deliverWrites(w, i, say)
	}
	if w.firstHeededEra < w.era {
		t := w
		t.firstHeededEra = w.era
		f("promises are too old", t)
	}
	x.restart(w, f)
	x.forgetMasters(w, f)
}

// hear lets a proxy learn of the era, and announce its pause.
func (x explorer) hear(w world, i int, f func(string, world)) {
	p := &w.proxies[i]
	if p.era != w.era {
		t := w
		t.proxies[i].era, t.proxies[i].place = w.era, w.place
		f("hears of the era", t)
	}
	if p.place.Moves() && p.heldBackIn != p.era+1 && p.conn.sent == nothing && p.conn.answer == nothing {
		t := w
		t.proxies[i].heldBackIn = p.era + 1
		f("holds back", t)
	}
	if !p.place.Moves() && p.era > w.recordedIn {
		t := w
		t.recorded, t.recordedIn = p.place, p.era
		f("records where they are", t)
	}
}

// connect lets a proxy connect, receive its first answer, and read the masters.
func (x explorer) connect(w world, i int, f func(string, world)) {
	c := &w.proxies[i].conn
	switch {
	case !c.dialed:
		t := w
		t.proxies[i].conn = connection{dialed: true, answer: c.answer}
		f("connects", t)
	case !c.open:
		t := w
		t.proxies[i].conn.open = true
		f("is answered", t)
	}
	if c.dialed && (c.open || x.readBeforeAnswer) && !c.read && w.place == Upstream {
		t := w
		p := &t.proxies[i]
		p.conn.read = true
		p.era, p.place = w.era, w.place
		f("reads the masters", t)
	}
}

// ask lets the proxy's client send a request to the place that the proxy knows.
func (x explorer) ask(w world, i int, f func(string, world)) {
	p := &w.proxies[i]
	if p.conn.answer != nothing { // the proxy reads the answer
		p.receive(p.conn.answer)
		p.conn.answer = nothing
		f("reads the answer", w)
		return
	}
	if p.conn.sent != nothing || p.sent != nothing {
		return
	}
	wants := take
	if p.client == holding || p.client == releasing {
		wants = release
	}
	switch {
	case p.place == Upstream && p.conn.dialed && p.conn.read:
		p.conn.sent = wants
	case p.place == Masters:
		p.sent, p.sentIn = wants, p.era
	default:
		return // the client waits
	}
	p.client = asking
	if wants == release {
		p.client = releasing
	}
	f("sends", w)
}

// receive passes an answer to the client.
func (p *proxy) receive(answer request) {
	if p.client == asking && answer == done {
		p.client, p.unsure = holding, false
		return
	}
	p.client = idle // the lock was released, or not taken
}

// receiveError passes an error to the client. A client that was releasing the lock retries.
func (p *proxy) receiveError() {
	switch p.client {
	case asking:
		p.client, p.unsure = idle, true
	case releasing:
		p.client = holding
	}
}

// applyRequest returns the lock after a request of client i, and the answer.
func applyRequest(lock uint8, i int, r request) (uint8, request) {
	own := uint8(i + 1)
	switch {
	case r == take && lock == 0:
		return own, done
	case r == release && lock == own:
		return 0, done
	}
	return lock, refused
}

// serve lets the upstream carry out a proxy's request.
func (x explorer) serve(w world, i int, f func(string, world)) {
	c := &w.proxies[i].conn
	if c.sent == nothing || !c.open {
		return
	}
	w.upstream, c.answer = applyRequest(w.upstream, i, c.sent)
	c.sent = nothing
	f("the upstream carries it out", w)
}

// vote lets the masters carry out a proxy's request. A request of another era does not count: at
// most it has the effect of an attempt that is never granted.
func (x explorer) vote(w world, i int, f func(string, world)) {
	p := &w.proxies[i]
	switch {
	case p.sent == nothing:
	case p.sentIn == w.era || x.countOtherEras:
		var answer request
		w.masters, answer = applyRequest(w.masters, i, p.sent)
		p.receive(answer)
		p.sent = nothing
		f("the masters vote", w)
	default:
		sent := p.sent
		p.receiveError()
		p.sent = nothing
		f("the masters do not vote", w)
		if sent == take {
			w.masters, _ = applyRequest(w.masters, i, take)
			f("the masters do what does not count", w)
		}
	}
}

// decide moves the locks to another place, in the next era.
func (w *world) decide(p Place) {
	w.era, w.place = w.era+1, p
}

// move lets a mover continue.
func (x explorer) move(w world, i int, f func(string, world)) {
	x.begin(w, i, f)
	m := &w.movers[i]
	current := m.era == w.era
	switch m.step {
	case began:
		x.claim(w, i, f)
	case claimed:
		x.endConnections(w, i, f)
	case exclusive:
		if !current || w.firstHeededEra < w.era && !x.skipPromiseWait {
			return
		}
		m.value = w.upstream
		if m.place == ToUpstream {
			m.value = w.masters
		}
		if m.place == ToMasters && !m.connected {
			return // the mover cannot read
		}
		m.step = reads
		f("reads", w)
	case reads:
		if x.keepExtraLocks && m.value == 0 {
			m.step = copied
			f("has nothing to write", w)
			return
		}
		pending := write{sent: true, era: m.era, value: m.value}
		if m.place == ToMasters && !m.toMasters.sent {
			m.toMasters = pending
		} else if m.place == ToUpstream && !m.toUpstream.sent && m.connected {
			m.toUpstream = pending
		} else {
			return
		}
		if x.removeBeforeDecision && m.place == ToMasters && m.connected {
			m.toUpstream = write{sent: true, remove: true}
		}
		m.step = copied // when the write arrives
		f("writes", w)
	case copied:
		if current && !m.toMasters.sent && !m.toUpstream.sent && w.era < x.lastEra {
			w.decide(m.place.Target())
			m.step = ended
			f("has it decided that they have moved", w)
		}
	case ended:
		if m.place == ToMasters && m.connected && !m.toUpstream.sent {
			m.toUpstream = write{sent: true, remove: true}
			m.step = rests
			f("removes what was moved", w)
		}
	}
}

// begin lets a mover begin a move, abort one, or propose the same as another mover.
func (x explorer) begin(w world, i int, f func(string, world)) {
	m := &w.movers[i]
	if w.era < x.lastEra {
		t := w
		t.movers[i].step = rests
		if w.place.Moves() {
			t.decide(w.place.Source())
		} else {
			t.decide(w.place.Departure())
			t.movers[i].step, t.movers[i].era, t.movers[i].place = began, t.era, t.place
		}
		f(fmt.Sprintf("decides on place %d", t.place), t)
	}
	if w.place.Moves() && (m.step == rests || m.era != w.era) {
		t := w
		t.movers[i].step, t.movers[i].era, t.movers[i].place = began, w.era, w.place
		f("had the same decided", t)
	}
}

// claim makes a mover the only one of its era, unless the record names another one.
func (x explorer) claim(w world, i int, f func(string, world)) {
	m := &w.movers[i]
	switch {
	case x.recordOnlyAtRest || x.twoMovers && m.era == w.recordedIn:
		m.step = claimed
	case m.era <= w.recordedIn:
		m.step = rests
	default:
		w.recorded, w.recordedIn, m.step = m.place, m.era, claimed
	}
	f("claims its era", w)
}

// endConnections ends the connections of all proxies that did not announce their pause, and
// connects the mover.
func (x explorer) endConnections(w world, i int, f func(string, world)) {
	m := &w.movers[i]
	for k := range w.proxies {
		p := &w.proxies[k]
		holds := p.heldBackIn == m.era+1 || x.trustOldHoldback && p.heldBackIn > 0
		if !holds && p.conn.open && !x.keepConnections {
			w.closeConnection(k)
		}
	}
	if other := &w.movers[1-i]; !x.keepMoverConnections {
		other.connected, other.toUpstream = false, write{}
	}
	m.connected, m.toUpstream = true, write{}
	m.step = exclusive
	f("is alone at the upstream", w)
}

// closeConnection ends a proxy's connection. Requests on it are not carried out. A reply may still
// be on its way.
func (w *world) closeConnection(i int) {
	p := &w.proxies[i]
	if p.conn.sent != nothing {
		p.receiveError()
	}
	p.conn = connection{answer: p.conn.answer}
}

// deliverWrites lets the writes of a mover arrive.
func (x explorer) deliverWrites(w world, i int, f func(string, world)) {
	if pending := w.movers[i].toUpstream; pending.sent {
		t := w
		t.movers[i].toUpstream = write{}
		t.upstream = pending.value
		f("the upstream has it written", t)
	}
	if pending := w.movers[i].toMasters; pending.sent {
		t := w
		t.movers[i].toMasters = write{}
		if pending.era >= w.firstHeededEra {
			t.masters = pending.value
		}
		f("the masters have it written", t)
	}
}

// restart lets the upstream save its data, and restart with or without them.
func (x explorer) restart(w world, f func(string, world)) {
	if w.faults >= x.faults {
		return
	}
	if w.saved != w.upstream {
		t := w
		t.saved = w.upstream
		f("the upstream saves", t)
	}
	for _, has := range []uint8{w.upstream, w.saved, 0} {
		t := w
		t.faults++
		for i := range t.proxies {
			if t.proxies[i].conn.dialed {
				t.closeConnection(i)
			}
		}
		for i := range t.movers {
			t.movers[i].connected, t.movers[i].toUpstream = false, write{}
		}
		t.upstream = has
		if w.place.Source() == Upstream && has != w.upstream {
			t.loseUpstreamLocks()
		}
		f(fmt.Sprintf("the upstream restarts with %d", has), t)
	}
}

// forgetMasters lets all masters forget everything, and all proxies restart, once no lock of the
// masters is still held.
func (x explorer) forgetMasters(w world, f func(string, world)) {
	if w.forgetCount >= x.maxForgets {
		return
	}
	at, _ := restored(nil, At{w.recorded, int(w.recordedIn)}, false)
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
		if p.sent != nothing {
			p.receiveError()
		}
		if p.conn, p.sent = (connection{}), nothing; atMasters || p.client != holding {
			p.client, p.unsure = idle, true
		}
		p.era, p.place, p.heldBackIn = uint8(at.Era), at.Place, 0
	}
	w.forgetCount, w.masters, w.movers = w.forgetCount+1, 0, [2]mover{}
	w.era, w.place, w.firstHeededEra = uint8(at.Era), at.Place, uint8(at.Era)
	f(fmt.Sprintf("the masters forget all, and are at place %d", at.Place), w)
}

// loseUpstreamLocks handles locks that only the upstream had, and lost. The same happens without a
// proxy. No client still counts as a holder, and each may have a lock that it does not rely on.
func (w *world) loseUpstreamLocks() {
	for i := range w.proxies {
		p := &w.proxies[i]
		p.conn.answer, p.unsure = nothing, true
		if p.sent == nothing {
			p.client = idle
		}
	}
}

// violation describes a violated invariant, or returns "".
func (w *world) violation() string {
	truth := w.currentLock()
	for i, p := range w.proxies {
		own := uint8(i + 1)
		switch {
		case p.client == holding && truth != own:
			return fmt.Sprintf("client %d holds a lock that is not there", i)
		case p.client == idle && !p.unsure && p.conn.answer == nothing && truth == own:
			return fmt.Sprintf("the lock of client %d is back", i)
		}
	}
	if w.proxies[0].client == holding && w.proxies[1].client == holding {
		return "two hold it"
	}
	return ""
}

// origin is how a world was first reached.
type origin struct {
	from world
	by   string
}

func (x explorer) explore(limit int) (states int, found []string) {
	root := world{place: Upstream}
	for i := range root.proxies {
		root.proxies[i].place = Upstream
	}
	for i := range root.movers {
		root.movers[i].place = Upstream
	}
	seen, queue := map[world]origin{root: {}}, []world{root}
	for len(queue) > 0 && len(seen) < limit {
		w := queue[0]
		queue = queue[1:]
		x.next(w, func(by string, t world) {
			if _, known := seen[t]; known || found != nil {
				return
			}
			seen[t] = origin{w, by}
			queue = append(queue, t)
			if what := t.violation(); what != "" {
				found = append(found, what)
				for at := t; at != root; at = seen[at].from {
					found = append(found, seen[at].by)
				}
				slices.Reverse(found)
			}
		})
		if found != nil {
			break
		}
	}
	return len(seen), found
}

func TestMoveExplored(t *testing.T) {
	for _, x := range []explorer{
		{proxies: 1, movers: 2, lastEra: 3},
		{proxies: 2, movers: 1, lastEra: 4},
		{proxies: 2, movers: 1, lastEra: 2, faults: 1},
		{proxies: 2, movers: 2, lastEra: 3, faults: 1},
		{proxies: 2, movers: 1, lastEra: 5, maxForgets: 1},
	} {
		limit := redistest.Sampled(200_000)
		if os.Getenv("REDLOCK_MODEL") != "" {
			limit = 12_000_000
		}
		states, found := x.explore(limit)
		t.Logf("%+v: %d states, complete: %v", x, states, states < limit)
		for _, step := range found {
			t.Error(step)
		}
	}
}

func TestEachRuleOfTheMoveIsNeeded(t *testing.T) {
	redistest.SkipShort(t)
	for name, x := range map[string]explorer{
		"the masters are read before the upstream answered": {proxies: 1, movers: 1, lastEra: 2, readBeforeAnswer: true},
		"no connection is ended":                            {proxies: 1, movers: 1, lastEra: 2, keepConnections: true},
		"no mover's connection is ended": {proxies: 1, movers: 2, lastEra: 4,
			keepMoverConnections: true},
		"a proxy that held back once does so for good": {proxies: 1, movers: 1, lastEra: 4, trustOldHoldback: true},
		"an era has two movers":                        {proxies: 1, movers: 2, lastEra: 2, twoMovers: true},
		"the settings say where what was forgotten is": {proxies: 1, movers: 1, lastEra: 4, maxForgets: 1,
			placeFromSettings: true},
		"no moving place is recorded": {proxies: 1, movers: 1, lastEra: 4, maxForgets: 1,
			recordOnlyAtRest: true},
		"old promises are not waited for": {proxies: 1, movers: 2, lastEra: 4, skipPromiseWait: true},
		"what is where they go stays":     {proxies: 1, movers: 1, lastEra: 4, keepExtraLocks: true},
		"removed before it is decided": {proxies: 1, movers: 1, lastEra: 2,
			removeBeforeDecision: true},
		"the masters count what is of another era": {proxies: 1, movers: 1, lastEra: 4, countOtherEras: true},
	} {
		t.Run(name, func(t *testing.T) {
			states, found := x.explore(5e6)
			t.Logf("%d states: %v", states, found)
			if found == nil {
				t.Error("nothing wrong")
			}
		})
	}
}
