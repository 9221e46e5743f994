package place

import (
	"fmt"
	"os"
	"slices"
	"testing"

	"redlock-proxy/internal/redistest"
)

// The move, explored: two clients, each behind a proxy of its own, want one lock over and over,
// always with the same token; two movers, each of which may stop at any point and go on much later;
// an upstream that restarts, with its data, with older data, or with none; masters that forget all,
// once what they held is over. What was sent arrives in any order, late, or never. The masters are
// one register here, whose eras are decided at once: that is explored elsewhere (internal/model,
// quorum/guard/reconfig).

// state is what a client does.
type state uint8

const (
	idle state = iota
	asking
	holding
	leaving
)

// request is what a client sends: it wants the lock, or gives it back. did and refused are the
// answers.
type request uint8

const (
	nothing request = iota
	take
	release
	did
	refused
)

// connection leads from a proxy to the upstream.
type connection struct {
	// dialed is set by the proxy, open by the upstream, which answers it then.
	dialed, open bool
	// read is set once the masters were read after that, and said that the locks are at the
	// upstream.
	read bool
	// sent is on its way to the upstream, answer on its way back.
	sent, answer request
}

// proxy is one with one client.
type proxy struct {
	client state
	// unsure is set where the client was told of an error: it may have the lock, and does not rely
	// on it.
	unsure bool
	// era is the latest that it has heard of, and where the locks are in it; held the one in which
	// it said that it holds back, plus one.
	era   uint8
	place Place
	held  uint8
	conn  connection
	// sent is on its way to the masters, of that era.
	sent   request
	sentIn uint8
}

// step is how far a mover has come.
type step uint8

const (
	rests   step = iota
	began        // its era is decided
	claimed      // the record has it
	alone        // nobody else changes anything at the upstream
	reads        // it knows what is to be written
	copied       // that is written
	ended        // it is decided that they have moved
)

// write is something on its way from a mover.
type write struct {
	sent, remove bool
	era, value   uint8
}

// mover is one who moves the locks.
type mover struct {
	step  step
	era   uint8
	place Place
	value uint8
	// connected is set while the upstream has its connection.
	connected             bool
	toUpstream, toMasters write
}

// world is all of it. A lock is the number of its client plus one; zero is none.
type world struct {
	era   uint8
	place Place
	// heeded is the first era of which the masters may still heed what they promised.
	heeded                   uint8
	upstream, masters, saved uint8
	faults, forgot           uint8
	// recorded is where the locks are as the upstream's record has it, recordedIn the era.
	recorded   Place
	recordedIn uint8
	proxies    [2]proxy
	movers     [2]mover
}

// explorer has the bounds, and the rules that are left out.
type explorer struct {
	proxies, movers int
	lastEra, faults uint8
	// forgets is how often all masters forget all.
	forgets uint8
	// sets: where the locks are then the settings say. late: the record has a place only once it is
	// at rest.
	sets, late bool
	// early: the masters may be read before the upstream has answered on the connection.
	early bool
	// spares: no connection is ended.
	spares bool
	// trusts: no connection of one who moves them is ended, either.
	trusts bool
	// believes: a proxy that held back once is believed to do so for good.
	believes bool
	// joins: of two that had the same era decided both move the locks.
	joins bool
	// hurries: what the masters promised in the era before is not waited for.
	hurries bool
	// keeps: what is where the locks go stays there if the other place has none.
	keeps bool
	// removes: a lock is removed where it was before it is decided that it has moved.
	removes bool
	// timeless: the masters count what was sent in another era.
	timeless bool
}

// truth is the lock where it is decided who has it.
func (w *world) truth() uint8 {
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
		x.carryOut(w, i, say)
	}
	if w.heeded < w.era {
		t := w
		t.heeded = w.era
		f("promises are too old", t)
	}
	x.restart(w, f)
	x.forget(w, f)
}

// hear has a proxy hear of the era, and say that it holds back.
func (x explorer) hear(w world, i int, f func(string, world)) {
	p := &w.proxies[i]
	if p.era != w.era {
		t := w
		t.proxies[i].era, t.proxies[i].place = w.era, w.place
		f("hears of the era", t)
	}
	if p.place.Moves() && p.held != p.era+1 && p.conn.sent == nothing && p.conn.answer == nothing {
		t := w
		t.proxies[i].held = p.era + 1
		f("holds back", t)
	}
	if !p.place.Moves() && p.era > w.recordedIn {
		t := w
		t.recorded, t.recordedIn = p.place, p.era
		f("records where they are", t)
	}
}

// connect has a proxy connect, have its first answer, and read the masters.
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
	if c.dialed && (c.open || x.early) && !c.read && w.place == Upstream {
		t := w
		p := &t.proxies[i]
		p.conn.read = true
		p.era, p.place = w.era, w.place
		f("reads the masters", t)
	}
}

// ask has its client ask for what it wants, at the place that the proxy knows.
func (x explorer) ask(w world, i int, f func(string, world)) {
	p := &w.proxies[i]
	if p.conn.answer != nothing { // the proxy reads it
		p.hears(p.conn.answer)
		p.conn.answer = nothing
		f("reads the answer", w)
		return
	}
	if p.conn.sent != nothing || p.sent != nothing {
		return
	}
	wants := take
	if p.client == holding || p.client == leaving {
		wants = release
	}
	switch {
	case p.place == Upstream && p.conn.dialed && p.conn.read:
		p.conn.sent = wants
	case p.place == Masters:
		p.sent, p.sentIn = wants, p.era
	default:
		return // it waits
	}
	p.client = asking
	if wants == release {
		p.client = leaving
	}
	f("sends", w)
}

// hears has the client take an answer.
func (p *proxy) hears(answer request) {
	if p.client == asking && answer == did {
		p.client, p.unsure = holding, false
		return
	}
	p.client = idle // who gave it back, and who did not get it
}

// fails has the client be told of an error. Who gives a lock back does so again.
func (p *proxy) fails() {
	switch p.client {
	case asking:
		p.client, p.unsure = idle, true
	case leaving:
		p.client = holding
	}
}

// carriedOut is a lock after a request of client i, and the answer.
func carriedOut(lock uint8, i int, r request) (uint8, request) {
	own := uint8(i + 1)
	switch {
	case r == take && lock == 0:
		return own, did
	case r == release && lock == own:
		return 0, did
	}
	return lock, refused
}

// serve has the upstream carry out what a proxy sent.
func (x explorer) serve(w world, i int, f func(string, world)) {
	c := &w.proxies[i].conn
	if c.sent == nothing || !c.open {
		return
	}
	w.upstream, c.answer = carriedOut(w.upstream, i, c.sent)
	c.sent = nothing
	f("the upstream carries it out", w)
}

// vote has the masters do what a proxy sent. In another era it does not count; what it does there
// all the same is at the most that of an attempt that nobody answers for.
func (x explorer) vote(w world, i int, f func(string, world)) {
	p := &w.proxies[i]
	switch {
	case p.sent == nothing:
	case p.sentIn == w.era || x.timeless:
		var answer request
		w.masters, answer = carriedOut(w.masters, i, p.sent)
		p.hears(answer)
		p.sent = nothing
		f("the masters vote", w)
	default:
		sent := p.sent
		p.fails()
		p.sent = nothing
		f("the masters do not vote", w)
		if sent == take {
			w.masters, _ = carriedOut(w.masters, i, take)
			f("the masters do what does not count", w)
		}
	}
}

// decide has the locks be at another place, in the next era.
func (w *world) decide(p Place) {
	w.era, w.place = w.era+1, p
}

// move has a mover go on.
func (x explorer) move(w world, i int, f func(string, world)) {
	x.begin(w, i, f)
	m := &w.movers[i]
	current := m.era == w.era
	switch m.step {
	case began:
		x.claim(w, i, f)
	case claimed:
		x.beAlone(w, i, f)
	case alone:
		if !current || w.heeded < w.era && !x.hurries {
			return
		}
		m.value = w.upstream
		if m.place == ToUpstream {
			m.value = w.masters
		}
		if m.place == ToMasters && !m.connected {
			return // it cannot read
		}
		m.step = reads
		f("reads", w)
	case reads:
		if x.keeps && m.value == 0 {
			m.step = copied
			f("has nothing to write", w)
			return
		}
		one := write{sent: true, era: m.era, value: m.value}
		if m.place == ToMasters && !m.toMasters.sent {
			m.toMasters = one
		} else if m.place == ToUpstream && !m.toUpstream.sent && m.connected {
			m.toUpstream = one
		} else {
			return
		}
		if x.removes && m.place == ToMasters && m.connected {
			m.toUpstream = write{sent: true, remove: true}
		}
		m.step = copied // once it is carried out
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

// begin has one begin a move, or give one up, or had the same decided as another.
func (x explorer) begin(w world, i int, f func(string, world)) {
	m := &w.movers[i]
	if w.era < x.lastEra {
		t := w
		t.movers[i].step = rests
		if w.place.Moves() {
			t.decide(w.place.Source())
		} else {
			t.decide(w.place.Away())
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

// claim has one be the mover of its era, unless the record has another one.
func (x explorer) claim(w world, i int, f func(string, world)) {
	m := &w.movers[i]
	switch {
	case x.late || x.joins && m.era == w.recordedIn:
		m.step = claimed
	case m.era <= w.recordedIn:
		m.step = rests
	default:
		w.recorded, w.recordedIn, m.step = m.place, m.era, claimed
	}
	f("claims its era", w)
}

// beAlone ends the connections of all that did not say that they hold back, and connects.
func (x explorer) beAlone(w world, i int, f func(string, world)) {
	m := &w.movers[i]
	for k := range w.proxies {
		p := &w.proxies[k]
		holds := p.held == m.era+1 || x.believes && p.held > 0
		if !holds && p.conn.open && !x.spares {
			w.lose(k)
		}
	}
	if other := &w.movers[1-i]; !x.trusts {
		other.connected, other.toUpstream = false, write{}
	}
	m.connected, m.toUpstream = true, write{}
	m.step = alone
	f("is alone at the upstream", w)
}

// lose ends a proxy's connection. What was sent on it is not carried out; an answer may be on its
// way.
func (w *world) lose(i int) {
	p := &w.proxies[i]
	if p.conn.sent != nothing {
		p.fails()
	}
	p.conn = connection{answer: p.conn.answer}
}

// carryOut has what a mover sent arrive.
func (x explorer) carryOut(w world, i int, f func(string, world)) {
	if one := w.movers[i].toUpstream; one.sent {
		t := w
		t.movers[i].toUpstream = write{}
		t.upstream = one.value
		f("the upstream has it written", t)
	}
	if one := w.movers[i].toMasters; one.sent {
		t := w
		t.movers[i].toMasters = write{}
		if one.era >= w.heeded {
			t.masters = one.value
		}
		f("the masters have it written", t)
	}
}

// restart has the upstream save its data, and restart with them or without.
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
				t.lose(i)
			}
		}
		for i := range t.movers {
			t.movers[i].connected, t.movers[i].toUpstream = false, write{}
		}
		t.upstream = has
		if w.place.Source() == Upstream && has != w.upstream {
			t.forgets()
		}
		f(fmt.Sprintf("the upstream restarts with %d", has), t)
	}
}

// forget has all masters lose all, and all proxies with them, once no lock is held any more that
// was granted there.
func (x explorer) forget(w world, f func(string, world)) {
	if w.forgot >= x.forgets {
		return
	}
	at, _ := restored(nil, At{w.recorded, int(w.recordedIn)}, false)
	switch {
	case x.sets:
		at.Place = Masters
	case at.Era == 0:
		at.Place = Upstream // it never was at rest elsewhere
	}
	atMasters := w.place.Source() == Masters
	for i := range w.proxies {
		w.lose(i)
		p := &w.proxies[i]
		if p.sent != nothing {
			p.fails()
		}
		if p.conn, p.sent = (connection{}), nothing; atMasters || p.client != holding {
			p.client, p.unsure = idle, true
		}
		p.era, p.place, p.held = uint8(at.Era), at.Place, 0
	}
	w.forgot, w.masters, w.movers = w.forgot+1, 0, [2]mover{}
	w.era, w.place, w.heeded = uint8(at.Era), at.Place, uint8(at.Era)
	f(fmt.Sprintf("the masters forget all, and are at place %d", at.Place), w)
}

// forgets is for locks that the upstream alone had, and lost: that is as it was without a proxy.
// Nobody is said to hold one any more, and each may have one that nobody knows of.
func (w *world) forgets() {
	for i := range w.proxies {
		p := &w.proxies[i]
		p.conn.answer, p.unsure = nothing, true
		if p.sent == nothing {
			p.client = idle
		}
	}
}

// wrong says what must not be.
func (w *world) wrong() string {
	truth := w.truth()
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

// came is how a world was first reached.
type came struct {
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
	seen, queue := map[world]came{root: {}}, []world{root}
	for len(queue) > 0 && len(seen) < limit {
		w := queue[0]
		queue = queue[1:]
		x.next(w, func(by string, t world) {
			if _, known := seen[t]; known || found != nil {
				return
			}
			seen[t] = came{w, by}
			queue = append(queue, t)
			if what := t.wrong(); what != "" {
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
		{proxies: 2, movers: 1, lastEra: 5, forgets: 1},
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
		"the masters are read before the upstream answered": {proxies: 1, movers: 1, lastEra: 2, early: true},
		"no connection is ended":                            {proxies: 1, movers: 1, lastEra: 2, spares: true},
		"no mover's connection is ended":                    {proxies: 1, movers: 2, lastEra: 4, trusts: true},
		"who held back once does so for good":               {proxies: 1, movers: 1, lastEra: 4, believes: true},
		"an era has two movers":                             {proxies: 1, movers: 2, lastEra: 2, joins: true},
		"the settings say where what was forgotten is":      {proxies: 1, movers: 1, lastEra: 4, forgets: 1, sets: true},
		"no moving place is recorded":                       {proxies: 1, movers: 1, lastEra: 4, forgets: 1, late: true},
		"old promises are not waited for":                   {proxies: 1, movers: 2, lastEra: 4, hurries: true},
		"what is where they go stays":                       {proxies: 1, movers: 1, lastEra: 4, keeps: true},
		"removed before it is decided":                      {proxies: 1, movers: 1, lastEra: 2, removes: true},
		"the masters count what is of another era":          {proxies: 1, movers: 1, lastEra: 4, timeless: true},
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
