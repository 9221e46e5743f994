package upstream

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"redlock-proxy/internal/resp"
)

const (
	// followEvery is how often the Sentinels are asked where the master is.
	followEvery = time.Second
	// sentinelTimeout bounds asking them, dialling included.
	sentinelTimeout = 2 * time.Second
	// spreadTime is how long a failover may be known to a minority of the Sentinels only. They tell
	// each other every 2 s.
	spreadTime = 10 * time.Second
	// sentinelGrace is how long the others are waited for when most of them have answered.
	sentinelGrace = 100 * time.Millisecond
)

// errReplica is why a server is not used that the Sentinels name.
var errReplica = errors.New("the Sentinels name it, but it says that it is no master")

// ErrFailedOver is the cause where a connection was ended because the Sentinels name another master
// now.
var ErrFailedOver = errors.New("it is the master no more, by what the Sentinels say")

// following is what is known of a master that Sentinels are asked about.
type following struct {
	Sentinels
	log    *slog.Logger
	each   []*sentinel
	asking chan struct{} // who asks them has put something in
	nudge  chan struct{} // the upstream is to be probed at once

	mu    sync.Mutex
	known opinion // without an address: nothing
	// doubted: the last connection to it failed, so they must be asked first.
	doubted bool
	silent  bool // the log was told that none of them tells
	// lone is what was believed although most say something else, since loneSince.
	lone      opinion
	loneSince time.Time

	asked sync.WaitGroup
}

// NewFollowing is [New] for a server of which Sentinels say where it is; the address in the URL is
// not used.
func NewFollowing(url string, sentinels Sentinels, timeout time.Duration, log *slog.Logger) (*Upstream, error) {
	u, err := New(url, timeout, log)
	if err != nil {
		return nil, err
	}
	f := &following{Sentinels: sentinels, log: log, asking: make(chan struct{}, 1), nudge: make(chan struct{}, 1)}
	for _, addr := range sentinels.Addrs {
		f.each = append(f.each, &sentinel{addr: addr})
	}
	u.following = f
	return u, nil
}

// OnFailover has moved called when another server has become the upstream, or this one is not to be
// used; connections of an earlier [Upstream.Term] are then to be ended. It is called before
// anything else.
func (u *Upstream) OnFailover(moved func()) { u.moved = moved }

// Term counts the failovers of the upstream, and when it was found that it must not be used.
func (u *Upstream) Term() uint64 { return u.term.Load() }

// Locate is the address of the upstream, host:port or the path of a socket. The error says why it
// cannot be known.
func (u *Upstream) Locate(ctx context.Context) (string, error) {
	if u.following == nil {
		return u.options.Load().Addr, nil
	}
	if known, doubted := u.following.state(); known != "" && !doubted {
		return known, nil
	}
	return u.find(ctx)
}

// find asks the Sentinels, or waits for who does.
func (u *Upstream) find(ctx context.Context) (string, error) {
	f := u.following
	select {
	case f.asking <- struct{}{}:
		defer func() { <-f.asking }()
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	all, failures := f.askAll(ctx, u)
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if len(all) == 0 {
		err := noSentinel(f.Master, failures)
		f.tellOfSilence(err)
		return "", err
	}
	from, to := f.take(choose(all, f.name()), majority(all, len(f.each)))
	if from != "" && from != to {
		u.switched(from, to)
	}
	return to, nil
}

// askAll asks all Sentinels at once, and waits for all that answer soon.
func (f *following) askAll(ctx context.Context, u *Upstream) (all []opinion, failures []string) {
	type answer struct {
		said opinion
		err  error
		from string
	}
	ctx, cancel := context.WithTimeout(ctx, sentinelTimeout)
	answers := make(chan answer, len(f.each))
	for _, s := range f.each {
		f.asked.Go(func() {
			said, err := s.ask(ctx, u)
			answers <- answer{said, err, s.addr}
		})
	}
	defer cancel()
	var grace <-chan time.Time
	for range f.each {
		select {
		case a := <-answers:
			if a.err != nil {
				failures = append(failures, fmt.Sprintf("%s: %v", a.from, plainCause(a.err)))
				continue
			}
			if all = append(all, a.said); len(all) == len(f.each)/2+1 {
				grace = time.After(sentinelGrace)
			}
		case <-grace:
			return all, failures
		case <-ctx.Done():
			return all, append(failures, "no answer in time of the others")
		}
	}
	return all, failures
}

// take believes an opinion, unless it is older than what is known and nothing speaks against that,
// or most Sentinels have been of another one for too long.
func (f *following) take(said, most opinion) (from, to string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.silent = false
	from = f.known.addr
	if from == "" || said.epoch >= f.known.epoch || f.doubted {
		f.known = said
	}
	if f.isLone(f.known, most, time.Now()) {
		f.known = most
	}
	f.doubted = false
	return from, f.known.addr
}

// isLone reports whether an opinion has had the time to spread and most Sentinels still are of
// another one. It is called with mu held.
func (f *following) isLone(said, most opinion, now time.Time) bool {
	switch {
	case most.addr == "" || said.addr == most.addr:
		f.lone = opinion{}
		return false
	case said != f.lone:
		f.lone, f.loneSince = said, now
		f.log.Debug("a Sentinel knows of a later failover than most others", "says", said.addr, "others", most.addr)
	}
	return now.Sub(f.loneSince) > spreadTime
}

// tellOfSilence tells the log, once, where there is a master that can be gone on with.
func (f *following) tellOfSilence(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.known.addr != "" && !f.silent {
		f.silent = true
		f.log.Warn("the upstream is taken to be where it was, as long as it can be reached", "upstream", f.known.addr, "cause", err)
	}
}

// doubt has the Sentinels asked before the next connection.
func (f *following) doubt() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.doubted = true
}

func (f *following) state() (known string, doubted bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.known.addr, f.doubted
}

// name is the master's address, or its name where that is not known.
func (f *following) name() string {
	if known, _ := f.state(); known != "" {
		return known
	}
	return f.Master
}

// switched leaves the old master. What it has said holds for as long as the new one cannot be
// reached.
func (u *Upstream) switched(from, to string) {
	f := u.following
	u.term.Add(1)
	f.log.Warn("the upstream has failed over: clients that were connected to the old master are disconnected", "master", f.Master, "from", from, "to", to)
	u.mu.Lock()
	u.refusal, u.stale = nil, true
	u.unasked, u.vouched, u.modes = 0, false, modes{}
	u.mu.Unlock()
	u.own.renew()
	u.moved()
	select {
	case f.nudge <- struct{}{}:
	default:
	}
}

// follow asks the Sentinels again and again until ctx ends.
func (u *Upstream) follow(ctx context.Context) {
	tick := time.Tick(followEvery)
	for {
		_, _ = u.find(ctx) // told where it matters
		select {
		case <-ctx.Done():
			return
		case <-tick:
		}
	}
}

// close ends what is kept to the Sentinels.
func (f *following) close() {
	for _, s := range f.each {
		s.close()
	}
	f.asked.Wait()
}

// checkRole refuses a server that says that it is no master; one that does not say is taken as it
// is.
func (u *Upstream) checkRole(conn net.Conn) error {
	if u.following == nil {
		return nil
	}
	answer, err := u.exchange(conn, "ROLE")
	if err != nil || resp.Begins(answer, "-") {
		return err
	}
	if role := resp.Texts(answer); len(role) > 0 && role[0] != "master" {
		return errReplica
	}
	return nil
}

// named are TLS settings for one of the servers behind Sentinels: each has a name of its own.
func (u *Upstream) named(settings *tls.Config, addr string) {
	if host, _, err := net.SplitHostPort(addr); err == nil && u.following != nil {
		settings.ServerName = host
	}
}
