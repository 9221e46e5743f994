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

// upstreamProbe is how often the upstream is probed.
const upstreamProbe = 2 * time.Second

// Run watches the upstream until ctx ends: whether it is up, and whether a new connection may do
// everything.
func (u *Upstream) Run(ctx context.Context) error {
	var probeNow chan struct{}
	if u.discovery != nil {
		var follows sync.WaitGroup
		follows.Go(func() { u.follow(ctx) })
		defer follows.Wait()
		probeNow = u.discovery.probeNow
	}
	tick := time.Tick(upstreamProbe)
	for {
		u.Probe(ctx)
		u.tryWrite(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-probeNow:
		case <-u.outdated:
			u.onFailover()
		case <-tick:
		}
	}
}

// Probe probes the upstream on a connection like those of clients, and finds out what such a
// connection may do. If the upstream answers, the known rights of clients expire.
func (u *Upstream) Probe(ctx context.Context) {
	term := u.Term()
	found, err := u.probeAccess(ctx)
	if err != nil {
		err = u.withAdvice(ctx, err)
	}
	name := u.Name()
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case term != u.Term(): // it is unknown which server the result is about, and the next probe is under way
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
			u.disconnectClients()
		}
		u.err = plainCause(err)
		u.uncheckedLeft, u.verified = 0, false
		u.modes.cluster = u.modes.cluster && errors.Is(err, ErrCluster) // else the next server may be a different one
	} else {
		u.opensAll, u.demandsLogin, u.known, u.advice = found.all, found.demands, true, nil
		u.probes.Add(1)
	}
}

// withAdvice returns the error of a probe, with advice if the upstream was never reached and its
// URL has the wrong scheme. All later errors that clients get contain the advice, too.
func (u *Upstream) withAdvice(ctx context.Context, err error) error {
	u.mu.Lock()
	settled := u.known || u.discovery != nil || u.advice != nil && errors.Is(err, u.advice)
	u.mu.Unlock()
	if settled {
		return err
	}
	opts := u.options.Load()
	server := scheme.Server{Network: opts.Network, Addr: opts.Addr, TLS: opts.TLSConfig != nil}
	advice := scheme.Advice(ctx, server, u.Timeout(), err)
	u.mu.Lock()
	defer u.mu.Unlock()
	u.advice = nil
	if advice == "" {
		return err
	}
	u.advice = errors.New(advice)
	return u.advice
}

// access holds whether a new connection may do everything, or nothing, before a login.
type access struct{ all, demands bool }

// probeAccess finds out what a new connection may do. Only the upstream's explicit replies count;
// any other reply may have another cause. It returns an error if the upstream does not answer. If
// the connection breaks, it asks again: only a new connection shows whether the upstream is gone.
func (u *Upstream) probeAccess(ctx context.Context) (found access, err error) {
	found, broken, err := u.probeAccessOnce(ctx)
	if broken {
		found, _, err = u.probeAccessOnce(ctx)
	}
	return found, err
}

// probeAccessOnce is probeAccess on one connection; broken: the connection ended meanwhile.
func (u *Upstream) probeAccessOnce(ctx context.Context) (found access, broken bool, err error) {
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
	if err == nil && resp.Begins(pong, "-BUSY ") {
		// The reply does not show the rights, and they cannot be changed while it lasts.
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

// Probes returns the number of probes that were answered.
func (u *Upstream) Probes() uint64 { return u.probes.Load() }

// GrantsAll reports whether a new connection to the upstream may do everything. It returns false if
// that is unknown. While the upstream does not answer, its last reply remains valid: clients that
// needed no login continue, and clients that must log in wait for the upstream.
func (u *Upstream) GrantsAll() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.opensAll
}

// RequiresLogin reports whether a new connection may do nothing before a login. known is false
// until the upstream was reached once. While the upstream does not answer, its last reply remains
// valid.
func (u *Upstream) RequiresLogin() (demands, known bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.demandsLogin, u.known
}

// Status returns the upstream's address, and why it is down; nil if it is up.
func (u *Upstream) Status() (name string, err error) {
	name = u.Name()
	u.mu.Lock()
	defer u.mu.Unlock()
	return name, u.err
}

// IsDown reports whether the upstream is known to be down.
func (u *Upstream) IsDown() bool {
	_, err := u.Status()
	return err != nil
}
