package messages

import (
	"context"
	"errors"
	"sync"
	"time"

	"redlock-proxy/internal/contained"
	"redlock-proxy/quorum/pushconn"
)

// period holds the state of one interval during which the proxy listens to the masters.
type period struct {
	listener *Listener
	ctx      context.Context
	cancel   context.CancelFunc

	mu             sync.Mutex
	conns          []*connection // by master; nil: not connected
	causes         []error       // by master: why it is not connected
	loggedWarnings []string
	order          order
	epochs         *epochs
	// connectionsChanged is closed when a master connects, or the period ends.
	connectionsChanged chan struct{}
	ended              bool
	// userCount counts the users: subscriptions, and callers of Join that wait. idleSince is the
	// time at which the last user left.
	userCount int
	idleSince time.Time
	// flushNumber is the number of the current or last flush. flushingConns holds the connections
	// whose masters have not answered this flush. needsFlush is set if another flush must follow at
	// once.
	flushNumber   uint64
	flushingConns map[*connection]bool
	needsFlush    bool
}

func newPeriod(l *Listener) *period {
	n := len(l.opts.Servers)
	p := &period{
		listener: l, conns: make([]*connection, n), causes: make([]error, n), loggedWarnings: make([]string, n),
		epochs:             newEpochs(n, l.opts.MinMasters),
		connectionsChanged: make(chan struct{}), flushingConns: map[*connection]bool{},
	}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.order.addSource(l.opts.OwnSource.state())
	return p
}

// start listens to each master until the period ends.
func (p *period) start() {
	for i := range p.conns {
		p.listener.tasks.Go(func() { p.listen(i) })
	}
	p.listener.tasks.Go(p.requestFlushes)
}

// requestFlushes requests a flush at each heartbeat, and ends the period if it is idle.
func (p *period) requestFlushes() {
	tick := time.Tick(heartbeat)
	for {
		select {
		case <-p.ctx.Done():
			return
		case now := <-tick:
			p.listener.closeIfIdle(p, now)
			p.mu.Lock()
			p.requestFlush()
			p.mu.Unlock()
		}
	}
}

func (p *period) addUser() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.userCount++
}

func (p *period) removeUser() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.removeUserLocked()
}

// removeUserLocked implements removeUser. Callers hold mu.
func (p *period) removeUserLocked() {
	if p.userCount--; p.userCount == 0 {
		p.idleSince = time.Now()
	}
}

func (p *period) isIdle(now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.userCount == 0 && now.Sub(p.idleSince) >= pushconn.IdleTimeout
}

// join adds a subscription, or returns a channel that is closed when another call may succeed.
// Before the time limit a subscription joins only when all available masters are connected, because
// masters that connect later do not count for this subscription. A subscription with more masters
// survives more breaks.
func (p *period) join(m *Subscription, timedOut bool) (joined bool, connectionsChanged chan struct{}, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.ended:
		return false, nil, ErrClosed
	case (timedOut || !p.mayConnectMore()) && p.epochs.join(m):
		return true, nil, nil
	}
	return false, p.connectionsChanged, nil
}

// mayConnectMore reports whether another master may be connected soon. Callers hold mu.
func (p *period) mayConnectMore() bool {
	for i, server := range p.listener.opts.Servers {
		if p.conns[i] == nil && !pushconn.IsRefusal(p.causes[i]) && !server.IsDown() {
			return true
		}
	}
	return false
}

// end ends the period, and calls onLoss of its subscriptions.
func (p *period) end() {
	p.mu.Lock()
	affected := p.epochs.removeAll()
	p.ended = true
	p.signalChange()
	p.mu.Unlock()
	p.cancel()
	notify(affected)
}

func notify(lostSubscriptions []*Subscription) {
	for _, m := range lostSubscriptions {
		m.onLoss()
	}
}

// signalChange wakes the callers of Join. Callers hold mu.
func (p *period) signalChange() {
	close(p.connectionsChanged)
	p.connectionsChanged = make(chan struct{})
}

// isConnected reports whether a master is connected.
func (p *period) isConnected(master int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.conns[master] != nil
}

// listen connects to a master again and again until the period ends.
func (p *period) listen(master int) {
	pushconn.Reconnector{
		Server: p.listener.opts.Servers[master], Rand: p.listener.opts.Rand,
		Wanted:  func() bool { return p.ctx.Err() == nil },
		Connect: func() error { return p.connectAndRead(master) },
		OnEnd:   func(err error) { p.onDisconnected(master, err) },
	}.Run(p.ctx)
}

// connectAndRead connects, and processes messages of the master until the connection ends.
func (p *period) connectAndRead(master int) error {
	conn, err := p.listener.opts.Servers[master].Watch(p.ctx, 0)
	if err != nil {
		return err
	}
	l := newConnection(conn)
	defer l.End()
	defer context.AfterFunc(p.ctx, l.End)()
	if err := l.subscribe(p.listener.opts.Channel); err != nil {
		return err
	}
	p.listener.tasks.Go(l.write)
	p.onConnected(master, l)
	return l.read(p.listener.opts.Channel, p.receive, func(flush uint64) { p.onFlushed(l, flush) })
}

// onConnected records that a master is connected.
func (p *period) onConnected(master int, l *connection) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns[master], p.causes[master], p.loggedWarnings[master] = l, nil, ""
	p.epochs.masterConnected(master)
	p.signalChange()
}

// onDisconnected handles the end of a connection, or a failed attempt.
func (p *period) onDisconnected(master int, err error) {
	p.mu.Lock()
	oldConn := p.conns[master]
	p.conns[master], p.causes[master] = nil, err
	var lostSubscriptions []*Subscription
	var readyMessages []Message
	if oldConn != nil {
		lostSubscriptions = p.epochs.masterDisconnected(master)
		delete(p.flushingConns, oldConn)
		readyMessages = p.finishFlush()
	}
	warn := pushconn.IsRefusal(err) && p.loggedWarnings[master] != err.Error()
	if warn {
		p.loggedWarnings[master] = err.Error()
	}
	p.deliver(readyMessages)
	p.mu.Unlock()
	notify(lostSubscriptions)
	log, name := p.listener.opts.Logger, p.listener.opts.Servers[master].Name()
	if panicErr := new(contained.PanicError); errors.As(err, &panicErr) {
		log.Error("internal error while receiving the messages of a master; report this line", "master", name, "cause", panicErr)
	}
	if warn {
		log.Warn("a master refuses SUBSCRIBE: messages come from the other masters only", "master", name, "cause", err)
	}
	if len(lostSubscriptions) > 0 {
		log.Warn("subscribers may miss messages: closing their connections", "master", name, "cause", err,
			"subscribers", len(lostSubscriptions))
	}
}

// receive processes a message. An error ends the connection that delivered it.
func (p *period) receive(m Message) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	ready, mustWait, err := p.order.add(m, p.nextFlush())
	if mustWait {
		p.requestFlush()
	}
	p.deliver(ready)
	return err
}

// deliver delivers messages in order. Callers hold mu.
func (p *period) deliver(readyMessages []Message) {
	if p.ended {
		return
	}
	for _, m := range readyMessages {
		p.listener.opts.Deliver(m)
	}
}

// nextFlush returns the number of the next flush. Callers of nextFlush, requestFlush and
// finishFlush hold mu.
func (p *period) nextFlush() uint64 { return p.flushNumber + 1 }

// requestFlush starts a flush, now or after the current one.
func (p *period) requestFlush() {
	if len(p.flushingConns) > 0 {
		p.needsFlush = true
		return
	}
	p.needsFlush = false
	p.flushNumber++
	p.order.beginFlush()
	for _, l := range p.conns {
		if l != nil {
			p.flushingConns[l] = true
			l.requestFlush(p.flushNumber)
		}
	}
}

// onFlushed records that a master has answered a flush: all messages published on the master before
// the flush have arrived.
func (p *period) onFlushed(l *connection, flush uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if flush != p.flushNumber || !p.flushingConns[l] {
		return
	}
	delete(p.flushingConns, l)
	p.deliver(p.finishFlush())
}

// finishFlush ends the current flush if all masters have answered it, and returns the messages to
// deliver.
func (p *period) finishFlush() (readyMessages []Message) {
	if len(p.flushingConns) > 0 {
		return nil
	}
	readyMessages = p.order.endFlush(p.flushNumber)
	if p.needsFlush {
		p.requestFlush()
	}
	return readyMessages
}
