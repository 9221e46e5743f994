package upstream

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"redlock-proxy/internal/resp"
	"redlock-proxy/internal/scheme"
)

// upstreamProbe is how often the upstream is asked for a sign of life.
const upstreamProbe = 2 * time.Second

// Run watches the upstream until ctx ends: whether it is up, and whether everything is
// allowed there to whoever connects.
func (u *Upstream) Run(ctx context.Context) error {
	var nudge chan struct{}
	if u.following != nil {
		var follows sync.WaitGroup
		follows.Go(func() { u.follow(ctx) })
		defer follows.Wait()
		nudge = u.following.nudge
	}
	tick := time.Tick(upstreamProbe)
	for {
		u.Probe(ctx)
		u.try(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-nudge:
		case <-u.parted:
			u.moved()
		case <-tick:
		}
	}
}

// Probe asks the upstream for a sign of life, on a connection like those that
// clients get, and what may be done on it. From then on clients are asked about anew.
func (u *Upstream) Probe(ctx context.Context) {
	term := u.Term()
	found, err := u.examine(ctx)
	if err != nil {
		err = u.advised(ctx, err)
	}
	name := u.Name()
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case term != u.Term(): // of which server it tells is not known, and the next probe is under way
		return
	case ctx.Err() != nil:
		return
	case err != nil && (u.err == nil || !u.probed):
		u.log.Warn("upstream down", "upstream", name, "cause", plainCause(err))
	case err == nil && (u.err != nil || !u.probed):
		u.log.Info("upstream up", "upstream", name)
	}
	was := u.err
	u.probed, u.err = true, nil
	if err != nil {
		if errors.Is(err, ErrMaster) && !errors.Is(was, ErrMaster) {
			u.part()
		}
		u.err = plainCause(err)
		u.unasked, u.vouched = 0, false
		u.modes.found = u.modes.found && errors.Is(err, ErrCluster) // else another server may be there next
	} else {
		u.all, u.demands, u.known, u.advice = found.all, found.demands, true, nil
		u.probes.Add(1)
	}
}

// advised is the error of a probe of an upstream that was never reached: where its URL has the
// wrong scheme, that says so, and so do all errors that clients get from now on.
func (u *Upstream) advised(ctx context.Context, err error) error {
	u.mu.Lock()
	settled := u.known || u.following != nil || u.advice != nil && errors.Is(err, u.advice)
	u.mu.Unlock()
	if settled {
		return err
	}
	is := u.options.Load()
	advice := scheme.Advice(ctx, scheme.Server{Network: is.Network, Addr: is.Addr, TLS: is.TLSConfig != nil}, u.Timeout(), err)
	u.mu.Lock()
	defer u.mu.Unlock()
	u.advice = nil
	if advice == "" {
		return err
	}
	u.advice = errors.New(advice)
	return u.advice
}

// access is what may be done on a new connection, before a login: everything, or nothing.
type access struct{ all, demands bool }

// examine finds out what may be done on a new connection. Nothing but the
// upstream's own word for it counts: what it answers otherwise may be any trouble that
// it has. The error says that it does not answer at all; one that goes away while it is
// asked is asked once more, for only a new connection tells whether it is gone.
func (u *Upstream) examine(ctx context.Context) (found access, err error) {
	found, broken, err := u.examineOnce(ctx)
	if broken {
		found, _, err = u.examineOnce(ctx)
	}
	return found, err
}

// examineOnce is examine on one connection; broken: it ended on the way.
func (u *Upstream) examineOnce(ctx context.Context) (found access, broken bool, err error) {
	conn, err := u.Connect(ctx)
	if err != nil {
		return found, false, err
	}
	conn = u.own.connections.add(conn)
	defer conn.Close()
	if err := errors.Join(u.askMode(conn), u.askServer(conn)); err != nil {
		return found, false, err
	}
	pong, err := u.exchange(conn, "PING")
	if err == nil && resp.Begins(pong, "-BUSY ") { // it tells nothing of rights, and nobody can change one there
		err = refusalOf([]string{"PING"}, pong)
	}
	if err != nil {
		return found, false, err
	}
	found.demands = resp.Begins(pong, "-NOAUTH")
	name, err := u.exchange(conn, "ACL", "WHOAMI")
	switch {
	case err != nil:
		return found, true, nil
	case name[0] == '-':
		info, err := u.exchange(conn, "INFO", "server")
		found.all = err == nil && resp.Begins(pong, "+PONG") && PredatesACL(info)
		return found, err != nil, nil
	}
	user, err := u.exchange(conn, "ACL", "GETUSER", strings.Join(resp.Texts(name), ""))
	found.all = err == nil && MayAll(user)
	return found, err != nil, nil
}

// Probes counts the probes that were answered.
func (u *Upstream) Probes() uint64 { return u.probes.Load() }

// OpensAll reports whether a client may do everything on a connection as the upstream gives it. It
// is false where that is not known. While the upstream does not answer, what it said last holds: a
// client that needed no login goes on, and one that has to log in waits for it.
func (u *Upstream) OpensAll() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.all
}

// DemandsLogin reports whether a new connection may do nothing before a login. Known is false as
// long as the upstream was never reached; while it does not answer, what it said last holds.
func (u *Upstream) DemandsLogin() (demands, known bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.demands, u.known
}

// Status is the state of the upstream: its address, and why it is down, if it is.
func (u *Upstream) Status() (name string, err error) {
	name = u.Name()
	u.mu.Lock()
	defer u.mu.Unlock()
	return name, u.err
}

// IsDown reports whether it is known not to answer.
func (u *Upstream) IsDown() bool {
	_, err := u.Status()
	return err != nil
}
