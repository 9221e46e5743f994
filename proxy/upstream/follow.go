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
	// sentinelInterval is the interval at which the Sentinels are asked for the master.
	sentinelInterval = time.Second
	// sentinelTimeout limits asking the Sentinels, including dialing.
	sentinelTimeout = 2 * time.Second
	// spreadTime is the longest time for which only a minority of the Sentinels may know of a
	// failover. Sentinels notify each other every 2 s.
	spreadTime = 10 * time.Second
	// sentinelGrace limits the proxy's wait for the remaining Sentinels once a majority has
	// answered.
	sentinelGrace = 100 * time.Millisecond
)

// errReplica reports that the server which the Sentinels name as the master reports a different
// role.
var errReplica = errors.New("the Sentinels report it as the master, but its ROLE is different")

// ErrFailedOver reports that a connection was ended because the Sentinels report another master.
var ErrFailedOver = errors.New("the Sentinels report a different master")

// discovery finds the master by asking Sentinels.
type discovery struct {
	Sentinels
	log            *slog.Logger
	servers        []*sentinel
	askSlot        chan struct{} // holds a value while a goroutine asks the Sentinels
	probeRequested chan struct{} // a value makes Run probe the upstream immediately

	mu            sync.Mutex
	currentReport masterReport // the current master; its address is empty if it is unknown
	// reconnectFailed is set if the last connection to the known master failed. The next connection
	// then asks the Sentinels first.
	reconnectFailed bool
	warnedNoAnswer  bool // a warning was logged that no Sentinel answers
	// minority is the adopted report, if most Sentinels have reported another master since
	// minoritySince.
	minority      masterReport
	minoritySince time.Time

	pendingAsks sync.WaitGroup
}

// NewWithSentinels returns an upstream like [New], but Sentinels report its address. It ignores the
// address in the URL.
func NewWithSentinels(url string, sentinels Sentinels, timeout time.Duration, log *slog.Logger) (*Upstream, error) {
	u, err := New(url, timeout, log)
	if err != nil {
		return nil, err
	}
	f := &discovery{Sentinels: sentinels, log: log, askSlot: make(chan struct{}, 1), probeRequested: make(chan struct{}, 1)}
	for _, addr := range sentinels.Addrs {
		f.servers = append(f.servers, &sentinel{addr: addr})
	}
	u.discovery = f
	return u, nil
}

// OnFailover sets the function to call when another server has become the upstream, or the current
// server must not be used. The function must end connections of an earlier [Upstream.Term].
// OnFailover must be called before all other methods.
func (u *Upstream) OnFailover(call func()) { u.onFailover = call }

// Term counts the failovers of the upstream, and how often the upstream turned out to be unusable.
func (u *Upstream) Term() uint64 { return u.term.Load() }

// Locate returns the address of the upstream: host:port, or the path of a socket. The error is the
// reason why the address is unknown.
func (u *Upstream) Locate(ctx context.Context) (string, error) {
	switch {
	case u.node != nil:
		return u.node.locate()
	case u.discovery == nil:
		return u.options.Load().Addr, nil
	}
	if known, failed := u.discovery.currentMaster(); known != "" && !failed {
		return known, nil
	}
	return u.findMaster(ctx)
}

// findMaster asks the Sentinels for the master, and returns its address. Only one goroutine asks at
// a time.
func (u *Upstream) findMaster(ctx context.Context) (string, error) {
	f := u.discovery
	select {
	case f.askSlot <- struct{}{}:
		defer func() { <-f.askSlot }()
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	all, failures := f.askAll(ctx, u)
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if len(all) == 0 {
		err := noSentinelError(f.MasterName, failures)
		f.warnNoAnswer(err)
		return "", err
	}
	from, to := f.adopt(chooseReport(all, f.name()), majorityReport(all, len(f.servers)))
	if from != "" && from != to {
		u.switchMaster(from, to)
	}
	return to, nil
}

// askAll asks all Sentinels at the same time, and returns the replies that come in time.
func (f *discovery) askAll(ctx context.Context, u *Upstream) (reports []masterReport, failures []string) {
	type answer struct {
		report masterReport
		err    error
		addr   string
	}
	ctx, cancel := context.WithTimeout(ctx, sentinelTimeout)
	answers := make(chan answer, len(f.servers))
	for _, s := range f.servers {
		f.pendingAsks.Go(func() {
			report, err := s.ask(ctx, u)
			answers <- answer{report, err, s.addr}
		})
	}
	defer cancel()
	var grace <-chan time.Time
	for range f.servers {
		select {
		case a := <-answers:
			if a.err != nil {
				failures = append(failures, fmt.Sprintf("%s: %v", a.addr, plainCause(a.err)))
				continue
			}
			if reports = append(reports, a.report); len(reports) == len(f.servers)/2+1 {
				grace = time.After(sentinelGrace)
			}
		case <-grace:
			return reports, failures
		case <-ctx.Done():
			return reports, append(failures, "no answer in time from the other Sentinels")
		}
	}
	return reports, failures
}

// adopt replaces the current report, unless the new report is older and the last connection to the
// current master succeeded. If most Sentinels have reported another master for too long, it adopts
// majority.
func (f *discovery) adopt(report, majority masterReport) (from, to string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.warnedNoAnswer = false
	from = f.currentReport.addr
	if from == "" || report.epoch >= f.currentReport.epoch || f.reconnectFailed {
		f.currentReport = report
	}
	if f.isOutvoted(f.currentReport, majority, time.Now()) {
		f.currentReport = majority
	}
	f.reconnectFailed = false
	return from, f.currentReport.addr
}

// isOutvoted reports whether most Sentinels have reported another master than this report for
// longer than spreadTime. The caller must hold mu.
func (f *discovery) isOutvoted(report, majority masterReport, now time.Time) bool {
	switch {
	case majority.addr == "" || report.addr == majority.addr:
		f.minority = masterReport{}
		return false
	case report != f.minority:
		f.minority, f.minoritySince = report, now
		f.log.Debug("a Sentinel knows of a later failover than most other Sentinels", "says", report.addr, "others", majority.addr)
	}
	return now.Sub(f.minoritySince) > spreadTime
}

// warnNoAnswer logs, once, that no Sentinel answers and the current master is kept.
func (f *discovery) warnNoAnswer(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.currentReport.addr != "" && !f.warnedNoAnswer {
		f.warnedNoAnswer = true
		f.log.Warn("no Sentinel answers: keeping the last known upstream while it can be reached",
			"upstream", f.currentReport.addr, "cause", err)
	}
}

// recordReconnectFailure records that a connection to the master failed: the next connection asks
// the Sentinels first.
func (f *discovery) recordReconnectFailure() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reconnectFailed = true
}

func (f *discovery) currentMaster() (addr string, reconnectFailed bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.currentReport.addr, f.reconnectFailed
}

// name returns the master's address, or its name if the address is unknown.
func (f *discovery) name() string {
	if known, _ := f.currentMaster(); known != "" {
		return known
	}
	return f.MasterName
}

// switchMaster records the new master, and ends connections to the old master. The old master's
// replies about logins remain valid until the new master has been reached.
func (u *Upstream) switchMaster(from, to string) {
	f := u.discovery
	f.log.Warn("upstream failed over: disconnecting clients of the old master",
		"master", f.MasterName, "from", from, "to", to)
	u.beginTerm(true)
}

// beginTerm begins another term, because another server has become the upstream. hadServer is set
// if the upstream had a server before.
func (u *Upstream) beginTerm(hadServer bool) {
	if hadServer {
		u.term.Add(1)
	}
	u.mu.Lock()
	u.dialErr, u.hasOldRights = nil, hadServer
	u.uncheckedRemaining, u.verified, u.mode = 0, false, modeState{}
	u.mu.Unlock()
	u.pool.renew()
	u.trials.wake()
	if hadServer {
		u.onFailover()
	}
	select {
	case u.probeRequested() <- struct{}{}:
	default:
	}
}

// probeRequested returns the channel by which a change of the server makes Run probe immediately;
// nil if the address is fixed.
func (u *Upstream) probeRequested() chan struct{} {
	switch {
	case u.discovery != nil:
		return u.discovery.probeRequested
	case u.node != nil:
		return u.node.probeRequested
	}
	return nil
}

// pollSentinels asks the Sentinels repeatedly until ctx ends.
func (u *Upstream) pollSentinels(ctx context.Context) {
	tick := time.Tick(sentinelInterval)
	for {
		_, _ = u.findMaster(ctx) // Locate returns the error to new connections
		select {
		case <-ctx.Done():
			return
		case <-tick:
		}
	}
}

// close closes the connections to the Sentinels.
func (f *discovery) close() {
	for _, s := range f.servers {
		s.close()
	}
	f.pendingAsks.Wait()
}

// checkRole refuses a server that reports a role other than master. It accepts a server that
// reports no role.
func (u *Upstream) checkRole(conn net.Conn) error {
	if u.discovery == nil {
		return nil
	}
	answer, err := u.exchange(conn, "ROLE")
	if err != nil || resp.HasPrefix(answer, "-") {
		return err
	}
	if role := resp.Texts(answer); len(role) > 0 && role[0] != "master" {
		return errReplica
	}
	return nil
}

// setServerName sets the name that the server's certificate must have, if Sentinels or a cluster
// report the server's address. Each server has its own name.
func (u *Upstream) setServerName(settings *tls.Config, addr string) {
	if host, _, err := net.SplitHostPort(addr); err == nil && (u.discovery != nil || u.node != nil) {
		settings.ServerName = host
	}
}
