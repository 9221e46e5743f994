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

// probeInterval is the time between two probes of the upstream.
const probeInterval = 2 * time.Second

// Run probes the upstream, asks its Sentinels for the master, and makes trial writes, until ctx
// ends.
func (u *Upstream) Run(ctx context.Context) error {
	if u.discovery != nil {
		var polling sync.WaitGroup
		polling.Go(func() { u.pollSentinels(ctx) })
		defer polling.Wait()
	}
	var trying sync.WaitGroup
	trying.Go(func() { u.runTrials(ctx) })
	defer trying.Wait()
	tick := time.Tick(probeInterval)
	for {
		u.Probe(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-u.probeRequested():
		case <-u.disconnectRequested:
			u.onFailover()
		case <-tick:
		}
	}
}

// Probe probes the upstream on a connection like a client's connection, and checks the rights of
// such a connection. If the upstream answers, the known rights of clients expire.
func (u *Upstream) Probe(ctx context.Context) {
	term := u.Term()
	result, err := u.probeAccess(ctx)
	if err != nil {
		err = u.withAdvice(ctx, err)
	}
	name := u.Name()
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case term != u.Term(): // the result may be about an earlier server
		return
	case ctx.Err() != nil:
		return
	case err != nil && (u.err == nil || !u.probed):
		u.log.Warn("upstream down", "upstream", name, "cause", plainCause(err))
	case err == nil && (u.err != nil || !u.probed):
		u.log.Info("upstream up", "upstream", name)
		u.trials.wake()
	}
	lastErr := u.err
	u.probed, u.err = true, nil
	if err != nil {
		if errors.Is(err, ErrGrantsLocks) && !errors.Is(lastErr, ErrGrantsLocks) {
			u.disconnectClients()
		}
		u.err = plainCause(err)
		u.uncheckedRemaining, u.verified = 0, false
		// After any other error, the upstream may be a different server.
		u.mode.cluster = u.mode.cluster && errors.Is(err, ErrCluster)
	} else {
		u.grantsAll, u.requiresLogin, u.probeAnswered, u.advice = result.grantsAll, result.requiresLogin, true, nil
		u.probes.Add(1)
	}
}

// withAdvice returns the error of a probe, with advice if the upstream was never reached and its
// URL has the wrong scheme. Until the upstream answers, errors for clients contain the advice, too,
// if the scheme may be their cause.
func (u *Upstream) withAdvice(ctx context.Context, err error) error {
	u.mu.Lock()
	settled := u.probeAnswered || u.discovery != nil || u.node != nil || u.advice != nil && errors.Is(err, u.advice)
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

// access holds the rights of a new connection before its client logs in: whether it has all rights,
// or none.
type access struct{ grantsAll, requiresLogin bool }

// probeAccess checks the rights of a new connection. Only explicit replies count, because other
// replies may have another cause. It returns an error if the upstream does not answer. If the
// connection breaks, it asks again on a new connection, to find out whether the upstream is down.
func (u *Upstream) probeAccess(ctx context.Context) (result access, err error) {
	result, broken, err := u.probeAccessOnce(ctx)
	if broken {
		result, _, err = u.probeAccessOnce(ctx)
	}
	return result, err
}

// probeAccessOnce checks the rights on one connection. broken is set if the connection ended
// meanwhile.
func (u *Upstream) probeAccessOnce(ctx context.Context) (result access, broken bool, err error) {
	conn, err := u.Connect(ctx)
	if err != nil {
		return result, false, err
	}
	conn = u.pool.connections.add(conn)
	defer conn.Close()
	if err := errors.Join(u.askMode(conn), u.askServer(conn)); err != nil {
		return result, false, err
	}
	pong, err := u.exchange(conn, "PING")
	if err == nil && resp.HasPrefix(pong, "-BUSY ") {
		// The reply does not show the rights, which cannot change while a script runs.
		err = refusalOf([]string{"PING"}, pong)
	}
	if err != nil {
		return result, false, err
	}
	result.requiresLogin = resp.HasPrefix(pong, "-NOAUTH")
	name, err := u.exchange(conn, "ACL", "WHOAMI")
	switch {
	case err != nil:
		return result, true, nil
	case name[0] == '-':
		info, err := u.exchange(conn, "INFO", "server")
		result.grantsAll = err == nil && resp.HasPrefix(pong, "+PONG") && PredatesACL(info)
		return result, err != nil, nil
	}
	user, err := u.exchange(conn, "ACL", "GETUSER", strings.Join(resp.Texts(name), ""))
	result.grantsAll = err == nil && HasAllPermissions(user)
	return result, err != nil, nil
}

// ProbeCount returns the number of probes that were answered.
func (u *Upstream) ProbeCount() uint64 { return u.probes.Load() }

// GrantsAll reports whether a new connection to the upstream may do everything. It returns false if
// that is unknown. While the upstream does not answer, its last reply remains valid: clients that
// needed no login continue, and clients that must log in wait for the upstream.
func (u *Upstream) GrantsAll() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.grantsAll
}

// RequiresLogin reports whether a new connection may do nothing before a login. known is false
// until the upstream was reached once. While the upstream does not answer, its last reply remains
// valid.
func (u *Upstream) RequiresLogin() (required, known bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.requiresLogin, u.probeAnswered
}

// Status returns the upstream's address, and the reason why the upstream is down; nil if it is up.
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
