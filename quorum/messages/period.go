package messages

import (
	"context"
	"errors"
	"sync"
	"time"

	"redlock-proxy/internal/contained"
	"redlock-proxy/quorum/feed"
)

// period is a time in which masters are listened to: what was heard before it is forgotten.
type period struct {
	of  *Listener
	ctx context.Context
	cut context.CancelFunc

	mu     sync.Mutex
	lines  []*line // by master; nil: not heard
	causes []error // why not
	warned []string
	order  order
	epochs *epochs
	// changed is closed when another master is heard, or the period has ended.
	changed chan struct{}
	ended   bool
	// here counts those who came, or wait to; idle is since when there is none.
	here int
	idle time.Time
	// flush is the flush that is under way, or the last one; left are those who have not answered
	// it. again is set where another one is to follow at once.
	flush uint64
	left  map[*line]bool
	again bool
}

func newPeriod(l *Listener) *period {
	n := len(l.opts.Servers)
	p := &period{
		of: l, lines: make([]*line, n), causes: make([]error, n), warned: make([]string, n), epochs: newEpochs(n, l.opts.Need),
		changed: make(chan struct{}), left: map[*line]bool{},
	}
	p.ctx, p.cut = context.WithCancel(context.Background())
	p.order.begins(l.opts.Own.state())
	return p
}

// start has each master be listened to, until the period ends.
func (p *period) start() {
	for i := range p.lines {
		p.of.tasks.Go(func() { p.listen(i) })
	}
	p.of.tasks.Go(p.beat)
}

// beat has all masters asked for a sign of life, now and then.
func (p *period) beat() {
	tick := time.Tick(beat)
	for {
		select {
		case <-p.ctx.Done():
			return
		case now := <-tick:
			p.of.rest(p, now)
			p.mu.Lock()
			p.wantFlush()
			p.mu.Unlock()
		}
	}
}

// comesIn counts one who is here.
func (p *period) comesIn() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.here++
}

// goneIn is gone.
func (p *period) goneIn() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gone()
}

// gone counts one out. It is called with mu held.
func (p *period) gone() {
	if p.here--; p.here == 0 {
		p.idle = time.Now()
	}
}

func (p *period) isIdle(now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.here == 0 && now.Sub(p.idle) >= feed.Linger
}

// join makes one a member, or gives what is closed when that may be possible. One who came early is
// one only when all masters are heard that can be: those that follow are none of its, so the more
// there are the longer it lasts.
func (p *period) join(m *Membership, late bool) (joined bool, changed chan struct{}, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.ended:
		return false, nil, ErrClosed
	case (late || !p.hopes()) && p.epochs.join(m):
		return true, nil, nil
	}
	return false, p.changed, nil
}

// hopes reports whether some master may be heard soon that is not. It is called with mu held.
func (p *period) hopes() bool {
	for i, server := range p.of.opts.Servers {
		if p.lines[i] == nil && !feed.IsRefusal(p.causes[i]) && !server.IsDown() {
			return true
		}
	}
	return false
}

// end ends the period, and notifies its members.
func (p *period) end() {
	p.mu.Lock()
	lost := p.epochs.everybody()
	p.ended = true
	p.stir()
	p.mu.Unlock()
	p.cut()
	notify(lost)
}

func notify(lost []*Membership) {
	for _, m := range lost {
		m.lost()
	}
}

// stir has those look again who wait to come. It is called with mu held.
func (p *period) stir() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// hears reports whether a master is listened to.
func (p *period) hears(master int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lines[master] != nil
}

// listen listens to a master again and again, as long as the period lasts.
func (p *period) listen(master int) {
	feed.Keeper{
		Server: p.of.opts.Servers[master], Rand: p.of.opts.Rand,
		Wanted: func() bool { return p.ctx.Err() == nil },
		Once:   func() error { return p.once(master) },
		Ended:  func(err error) { p.broke(master, err) },
	}.Keep(p.ctx)
}

// once connects, and takes what the master brings until the connection ends.
func (p *period) once(master int) error {
	conn, err := p.of.opts.Servers[master].Watch(p.ctx, 0)
	if err != nil {
		return err
	}
	l := newLine(conn)
	defer l.End()
	defer context.AfterFunc(p.ctx, l.End)()
	if err := l.subscribe(p.of.opts.Channel); err != nil {
		return err
	}
	p.of.tasks.Go(l.write)
	p.heard(master, l)
	return l.read(p.of.opts.Channel, p.brought, func(flush uint64) { p.flushed(l, flush) })
}

// heard notes that a master is listened to.
func (p *period) heard(master int, l *line) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lines[master], p.causes[master], p.warned[master] = l, nil, ""
	p.epochs.begins(master)
	p.stir()
}

// broke notes that a master is not listened to any more, or could not be.
func (p *period) broke(master int, err error) {
	p.mu.Lock()
	was := p.lines[master]
	p.lines[master], p.causes[master] = nil, err
	var lost []*Membership
	var ready []Message
	if was != nil {
		lost = p.epochs.ends(master)
		delete(p.left, was)
		ready = p.finish()
	}
	warn := feed.IsRefusal(err) && p.warned[master] != err.Error()
	if warn {
		p.warned[master] = err.Error()
	}
	p.deliver(ready)
	p.mu.Unlock()
	notify(lost)
	log, name := p.of.opts.Logger, p.of.opts.Servers[master].Name()
	if mistake := new(contained.PanicError); errors.As(err, &mistake) {
		log.Error("listening to a master failed", "master", name, "cause", mistake)
	}
	if warn {
		log.Warn("a master does not let itself be listened to: its messages come from the others alone", "master", name, "cause", err)
	}
	if len(lost) > 0 {
		log.Warn("subscribers may miss messages, and lose their connections", "master", name, "cause", err, "subscribers", len(lost))
	}
}

// brought takes a message. The error ends the connection that brought it.
func (p *period) brought(m Message) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	ready, waits, err := p.order.take(m, p.nextFlush())
	if waits {
		p.wantFlush()
	}
	p.deliver(ready)
	return err
}

// deliver delivers messages, in their order. It is called with mu held.
func (p *period) deliver(ready []Message) {
	if p.ended {
		return
	}
	for _, m := range ready {
		p.of.opts.Deliver(m)
	}
}

// nextFlush is the first flush that begins from now on. It is called with mu held, as those that
// follow.
func (p *period) nextFlush() uint64 { return p.flush + 1 }

// wantFlush has a flush begin, now or after the one that is under way.
func (p *period) wantFlush() {
	if len(p.left) > 0 {
		p.again = true
		return
	}
	p.again = false
	p.flush++
	p.order.begin()
	for _, l := range p.lines {
		if l != nil {
			p.left[l] = true
			l.want(p.flush)
		}
	}
}

// flushed takes that all has come from a master that was published before a flush.
func (p *period) flushed(l *line, flush uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if flush != p.flush || !p.left[l] {
		return
	}
	delete(p.left, l)
	p.deliver(p.finish())
}

// finish ends the flush that is under way, if nobody is left to answer it, and gives what is to be
// delivered.
func (p *period) finish() (ready []Message) {
	if len(p.left) > 0 {
		return nil
	}
	ready = p.order.flushed(p.flush)
	if p.again {
		p.wantFlush()
	}
	return ready
}
