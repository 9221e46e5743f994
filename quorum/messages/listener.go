package messages

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"redlock-proxy/quorum/feed"
)

// Server is a master as a Listener needs it.
type Server = feed.Server

// Options say what a Listener listens to. All must be set.
type Options struct {
	Servers []Server
	// Channel is the masters' channel on which proxies publish.
	Channel string
	// Own numbers the messages that this process publishes: what was decided before anybody
	// listened is for nobody, whenever a master brings it.
	Own *Source
	// Need is how many masters must be heard for any majority of them to have one of these.
	Need int
	// Wait is how long one who comes waits for so many to be heard.
	Wait time.Duration
	// Deliver takes each message once. It must not wait, nor call the Listener.
	Deliver func(Message)
	Logger  *slog.Logger
	// Rand gives numbers in [0, 1).
	Rand func() float64
}

var (
	// ErrClosed is returned once the Listener is closed.
	ErrClosed = errors.New("messages are not listened to any more")
	// ErrUnheard is returned where too few masters can be listened to.
	ErrUnheard = errors.New("too few masters can be listened to")
)

// Listener brings the messages that proxies publish on the masters, as long as somebody is to get
// any. It is safe for concurrent use.
type Listener struct {
	opts  Options
	tasks sync.WaitGroup

	mu     sync.Mutex
	closed bool
	period *period // nil: nothing is listened to
}

// New makes a Listener, which connects to nothing as long as nobody has joined.
func New(opts Options) *Listener { return &Listener{opts: opts} }

// Membership is one who gets all messages that are published after it came, or is notified that it
// may not.
type Membership struct {
	lost   func()
	period *period
	epoch  *epoch
}

// Join has one come. lost is called once if some message may be missed from then on; it must not
// wait, nor call the Listener.
//
// Errors: ErrUnheard, ErrClosed, or the cause of ctx.
func (l *Listener) Join(ctx context.Context, lost func()) (*Membership, error) {
	p, err := l.now()
	if err != nil {
		return nil, err
	}
	m := &Membership{lost: lost, period: p}
	tick := time.Tick(joinPause)
	for until := time.Now().Add(l.opts.Wait); ; {
		late := time.Now().After(until)
		joined, changed, err := p.join(m, late)
		switch {
		case joined:
			return m, nil
		case err == nil && late:
			err = ErrUnheard
		case err == nil:
			select {
			case <-changed:
			case <-tick: // a master may be down by now
			case <-ctx.Done():
				err = context.Cause(ctx)
			}
		}
		if err != nil {
			p.goneIn()
			return nil, err
		}
	}
}

// joinPause is the wait between two looks whether all masters are heard that can be.
const joinPause = 20 * time.Millisecond

// now is the period of now, in which one more is counted.
func (l *Listener) now() (*period, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, ErrClosed
	}
	if l.period == nil {
		l.period = newPeriod(l)
		l.period.start()
	}
	l.period.comesIn()
	return l.period, nil
}

// Leave unsubscribes; nothing is delivered after it.
func (m *Membership) Leave() {
	m.period.mu.Lock()
	defer m.period.mu.Unlock()
	m.period.epochs.leave(m)
	m.period.gone()
}

// Deliver delivers a message as if a master had brought it: one that this proxy published, and that
// a majority of them has.
func (l *Listener) Deliver(m Message) {
	l.mu.Lock()
	p := l.period
	l.mu.Unlock()
	if p != nil {
		_ = p.brought(m)
	}
}

// Hears reports whether a master is listened to now.
func (l *Listener) Hears(master int) bool {
	l.mu.Lock()
	p := l.period
	l.mu.Unlock()
	return p != nil && p.hears(master)
}

// Causes are why masters are not listened to, nil for those that are, or where nobody wants it.
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

// Close ends it: all who came are notified that they may miss something.
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

// rest ends a period of which nobody is a member any more.
func (l *Listener) rest(p *period, now time.Time) {
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
