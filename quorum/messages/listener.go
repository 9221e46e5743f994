package messages

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"redlock-proxy/quorum/pushconn"
)

// Server describes a master to a Listener.
type Server = pushconn.Server

// Options configures a Listener. All fields must be set.
type Options struct {
	Servers []Server
	// Channel is the channel on the masters on which proxies publish.
	Channel string
	// OwnSource numbers the messages of this process. The Listener ignores messages of this process
	// that were decided before it began to listen, even if a master delivers them late.
	OwnSource *Source
	// MinMasters is the minimum number of connected masters such that every majority includes one
	// of them.
	MinMasters int
	// JoinTimeout limits how long Join waits for masters to be connected.
	JoinTimeout time.Duration
	// Deliver gets each message once. It must not block, nor call the Listener.
	Deliver func(Message)
	Logger  *slog.Logger
	// Rand returns numbers in [0, 1).
	Rand func() float64
}

var (
	// ErrClosed means that the Listener is closed.
	ErrClosed = errors.New("the listener for messages is closed")
	// ErrTooFewMasters means that fewer than MinMasters masters were connected within JoinTimeout.
	ErrTooFewMasters = errors.New("too few masters deliver messages")
)

// Listener receives the messages that proxies publish on the masters, while there are
// subscriptions. It is safe for concurrent use.
type Listener struct {
	opts  Options
	tasks sync.WaitGroup

	mu     sync.Mutex
	closed bool
	period *period // nil: not listening
}

// New returns a Listener. It connects to the masters only while there are subscriptions.
func New(opts Options) *Listener { return &Listener{opts: opts} }

// Subscription represents a subscriber to all messages that are published after Join has returned.
// The Listener delivers these messages, or calls onLoss if the subscriber may miss one.
type Subscription struct {
	onLoss func()
	period *period
	epoch  *epoch
}

// Join adds a subscription. The Listener calls onLoss once if the subscriber may miss a message.
// onLoss must not block, nor call the Listener.
//
// Errors: ErrTooFewMasters, ErrClosed, or the cause of ctx.
func (l *Listener) Join(ctx context.Context, onLoss func()) (*Subscription, error) {
	p, err := l.currentPeriod()
	if err != nil {
		return nil, err
	}
	m := &Subscription{onLoss: onLoss, period: p}
	tick := time.Tick(joinPause)
	for deadline := time.Now().Add(l.opts.JoinTimeout); ; {
		late := time.Now().After(deadline)
		joined, changed, err := p.join(m, late)
		switch {
		case joined:
			return m, nil
		case err == nil && late:
			err = ErrTooFewMasters
		case err == nil:
			select {
			case <-changed:
			case <-tick: // the prober may have found a master to be down
			case <-ctx.Done():
				err = context.Cause(ctx)
			}
		}
		if err != nil {
			p.removeUser()
			return nil, err
		}
	}
}

// joinPause is the time between two checks whether all available masters are connected.
const joinPause = 20 * time.Millisecond

// currentPeriod returns the current period, and begins one if necessary. It counts the caller as a
// user of the period.
func (l *Listener) currentPeriod() (*period, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, ErrClosed
	}
	if l.period == nil {
		l.period = newPeriod(l)
		l.period.start()
	}
	l.period.addUser()
	return l.period, nil
}

// Leave removes the subscription. A call of onLoss may still be in progress or follow.
func (m *Subscription) Leave() {
	m.period.mu.Lock()
	defer m.period.mu.Unlock()
	m.period.epochs.leave(m)
	m.period.removeUserLocked()
}

// Deliver delivers a message of this proxy that a majority has accepted, as if a master had
// delivered it.
func (l *Listener) Deliver(m Message) {
	l.mu.Lock()
	p := l.period
	l.mu.Unlock()
	if p != nil {
		_ = p.receive(m)
	}
}

// IsConnected reports whether a master is connected.
func (l *Listener) IsConnected(master int) bool {
	l.mu.Lock()
	p := l.period
	l.mu.Unlock()
	return p != nil && p.isConnected(master)
}

// Causes returns, for each master, the reason why it is not connected; nil if it is connected or
// there are no subscriptions.
func (l *Listener) Causes() []error {
	l.mu.Lock()
	p := l.period
	l.mu.Unlock()
	if p == nil {
		return make([]error, len(l.opts.Servers))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]error(nil), p.causes...)
}

// Close closes the Listener, and calls onLoss of all subscriptions.
func (l *Listener) Close() {
	l.mu.Lock()
	p := l.period
	l.closed, l.period = true, nil
	l.mu.Unlock()
	if p != nil {
		p.end()
	}
	l.tasks.Wait()
}

// closeIfIdle ends a period that has had no users for pushconn.IdleTimeout.
func (l *Listener) closeIfIdle(p *period, now time.Time) {
	l.mu.Lock()
	idle := p.isIdle(now)
	if idle && l.period == p {
		l.period = nil
	}
	l.mu.Unlock()
	if idle {
		p.end()
	}
}
