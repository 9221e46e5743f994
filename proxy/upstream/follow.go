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
	// followEvery is how often the Sentinels are asked for the master.
	followEvery = time.Second
	// sentinelTimeout limits asking the Sentinels, including dialing.
	sentinelTimeout = 2 * time.Second
	// spreadTime is how long only a minority of the Sentinels may know of a failover. They notify
	// each other every 2 s.
	spreadTime = 10 * time.Second
	// sentinelGrace is how long the remaining Sentinels are waited for once a majority has
	// answered.
	sentinelGrace = 100 * time.Millisecond
)

// errReplica reports that a server which the Sentinels name as master is not one.
var errReplica = errors.New("the Sentinels report it as the master, but its ROLE is different")

// ErrFailedOver reports that a connection was ended because the Sentinels report another master.
var ErrFailedOver = errors.New("the Sentinels report another master")

// discovery finds the master by asking Sentinels.
type discovery struct {
	Sentinels
	log      *slog.Logger
	each     []*sentinel
	asking   chan struct{} // holds a value while the Sentinels are asked
	probeNow chan struct{} // asks for a probe of the upstream at once

	mu    sync.Mutex
	known opinion // without an address: unknown
	// suspect is set if the last connection to the known master failed: the Sentinels are asked
	// first.
	suspect      bool
	warnedSilent bool // a warning was logged that no Sentinel answers
	// minority is the adopted opinion that most Sentinels have not shared since minoritySince.
	minority      opinion
	minoritySince time.Time

	asked sync.WaitGroup
}

// NewFollowing is [New] for an upstream whose address Sentinels report. It ignores the address in
// the URL.
func NewFollowing(url string, sentinels Sentinels, timeout time.Duration, log *slog.Logger) (*Upstream, error) {
	u, err := New(url, timeout, log)
	if err != nil {
		return nil, err
	}
	f := &discovery{Sentinels: sentinels, log: log, asking: make(chan struct{}, 1), probeNow: make(chan struct{}, 1)}
	for _, addr := range sentinels.Addrs {
		f.each = append(f.each, &sentinel{addr: addr})
	}
	u.discovery = f
	return u, nil
}

// OnFailover sets the function to call when another server has become the upstream, or the current
// one must not be used. Connections of an earlier [Upstream.Term] must then be ended. It is called
// before all other methods.
func (u *Upstream) OnFailover(call func()) { u.onFailover = call }

// Term counts the failovers of the upstream, and how often the upstream turned out to be unusable.
func (u *Upstream) Term() uint64 { return u.term.Load() }

// Locate returns the address of the upstream: host:port, or the path of a socket. The error is the
// reason why it is unknown.
func (u *Upstream) Locate(ctx context.Context) (string, error) {
	if u.discovery == nil {
		return u.options.Load().Addr, nil
	}
	if known, suspect := u.discovery.state(); known != "" && !suspect {
		return known, nil
	}
	return u.find(ctx)
}

// find asks the Sentinels, or waits while another goroutine does.
func (u *Upstream) find(ctx context.Context) (string, error) {
	f := u.discovery
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
		f.warnSilent(err)
		return "", err
	}
	from, to := f.adopt(chooseOpinion(all, f.name()), majorityOpinion(all, len(f.each)))
	if from != "" && from != to {
		u.switchMaster(from, to)
	}
	return to, nil
}

// askAll asks all Sentinels at once, and waits for replies that come in time.
func (f *discovery) askAll(ctx context.Context, u *Upstream) (all []opinion, failures []string) {
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
			return all, append(failures, "no answer in time from the other Sentinels")
		}
	}
	return all, failures
}

// adopt makes an opinion the known one, unless it is older and the known master is not suspect. If
// most Sentinels have had another opinion for too long, it adopts theirs.
func (f *discovery) adopt(said, most opinion) (from, to string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.warnedSilent = false
	from = f.known.addr
	if from == "" || said.epoch >= f.known.epoch || f.suspect {
		f.known = said
	}
	if f.isOutvoted(f.known, most, time.Now()) {
		f.known = most
	}
	f.suspect = false
	return from, f.known.addr
}

// isOutvoted reports whether an opinion has had time to spread and most Sentinels still have
// another one. It is called with mu held.
func (f *discovery) isOutvoted(said, most opinion, now time.Time) bool {
	switch {
	case most.addr == "" || said.addr == most.addr:
		f.minority = opinion{}
		return false
	case said != f.minority:
		f.minority, f.minoritySince = said, now
		f.log.Debug("a Sentinel knows of a later failover than most others", "says", said.addr, "others", most.addr)
	}
	return now.Sub(f.minoritySince) > spreadTime
}

// warnSilent logs, once, that no Sentinel answers while the known master can still be used.
func (f *discovery) warnSilent(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.known.addr != "" && !f.warnedSilent {
		f.warnedSilent = true
		f.log.Warn("no Sentinel answers: keeping the last known upstream while it can be reached",
			"upstream", f.known.addr, "cause", err)
	}
}

// markSuspect makes the next connection ask the Sentinels first.
func (f *discovery) markSuspect() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.suspect = true
}

func (f *discovery) state() (known string, suspect bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.known.addr, f.suspect
}

// name returns the master's address, or its name if the address is unknown.
func (f *discovery) name() string {
	if known, _ := f.state(); known != "" {
		return known
	}
	return f.Master
}

// switchMaster leaves the old master. The old master's replies about logins remain valid until the
// new one has been reached.
func (u *Upstream) switchMaster(from, to string) {
	f := u.discovery
	u.term.Add(1)
	f.log.Warn("upstream failed over: disconnecting clients of the old master",
		"master", f.Master, "from", from, "to", to)
	u.mu.Lock()
	u.refusal, u.fromOldMaster = nil, true
	u.uncheckedLeft, u.verified, u.modes = 0, false, modes{}
	u.mu.Unlock()
	u.own.renew()
	u.onFailover()
	select {
	case f.probeNow <- struct{}{}:
	default:
	}
}

// follow asks the Sentinels repeatedly until ctx ends.
func (u *Upstream) follow(ctx context.Context) {
	tick := time.Tick(followEvery)
	for {
		_, _ = u.find(ctx) // the error is reported to connections
		select {
		case <-ctx.Done():
			return
		case <-tick:
		}
	}
}

// close closes the connections to the Sentinels.
func (f *discovery) close() {
	for _, s := range f.each {
		s.close()
	}
	f.asked.Wait()
}

// checkRole refuses a server that reports a role other than master, but not one that reports none.
func (u *Upstream) checkRole(conn net.Conn) error {
	if u.discovery == nil {
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

// setServerName sets the name that the certificate of a server behind Sentinels must have. Each
// server has its own name.
func (u *Upstream) setServerName(settings *tls.Config, addr string) {
	if host, _, err := net.SplitHostPort(addr); err == nil && u.discovery != nil {
		settings.ServerName = host
	}
}
