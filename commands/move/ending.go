package move

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/internal/clientlist"
	"redlock-proxy/internal/pacing"
	"redlock-proxy/quorum"
)

// pauseCheckInterval is the time between two checks whether all proxies have paused. retryInterval
// is the time between two attempts at any other operation.
const (
	pauseCheckInterval = 20 * time.Millisecond
	retryInterval      = 100 * time.Millisecond
)

// connectionName is the name of a mover's connection at the upstream.
const connectionName = "redlock-proxy-move"

// WatchName is the name of a connection on which a proxy only watches the upstream. No client takes
// locks over such a connection, so a move closes it without asking the operator.
const WatchName = "redlock-proxy-watch"

// isHarmless reports whether the connection only watches the upstream, like the connections of
// Sentinels and proxies, or belongs to another run. A move closes it without asking the operator.
func isHarmless(c clientlist.Client) bool {
	return strings.HasPrefix(c["name"], "sentinel-") || c["name"] == connectionName || c["name"] == WatchName
}

// quiesce waits until no command sent earlier can still change the locks at the upstream (rule 2 of
// package location).
func (r *run) quiesce(ctx context.Context) error {
	before, err := r.listConnections(ctx)
	if err != nil {
		return err
	}
	foreign, direct, err := r.awaitForeignConns(ctx, before)
	if err != nil {
		return err
	}
	if len(direct) > 0 {
		if !r.request.CloseForeignConns {
			return fmt.Errorf("connections at the upstream may belong to clients that lock there: %s; "+
				"if none of these clients takes locks, --even-if-others (EVENIFOTHERS) closes the connections and continues",
				summarize(direct))
		}
		r.addLine("connections of clients without a proxy at the upstream: %s", summarize(direct))
	}
	return r.closeConnections(ctx, foreign)
}

// reportTimeout is the time limit for proxies to report connections that they have just made.
const reportTimeout = time.Second

// awaitForeignConns waits until all proxies have paused, and returns the same as
// foreignConnections. It gives proxies time to report the connections that they made for new
// clients just before they paused.
func (r *run) awaitForeignConns(
	ctx context.Context, earlierConns []clientlist.Client,
) (foreign []clientlist.Client, direct []string, err error) {
	pauseDeadline := time.Now().Add(r.pauseTimeout)
	for deadline := (time.Time{}); ; {
		reports, err := r.awaitPauses(ctx, pauseDeadline)
		if err != nil {
			return nil, nil, err
		}
		if deadline.IsZero() {
			deadline = time.Now().Add(reportTimeout)
		}
		current, err := r.listConnections(ctx)
		if err != nil {
			return nil, nil, err
		}
		foreign, direct = r.foreignConnections(earlierConns, current, reports)
		if len(direct) == 0 || !time.Now().Before(deadline) {
			return foreign, direct, nil
		}
		if err := pacing.Sleep(ctx, pauseCheckInterval); err != nil {
			return nil, nil, err
		}
	}
}

// awaitPauses waits, at most until deadline, until all running proxies have reported that they
// paused the commands on lock keys, and the run_id of their upstream. It returns the reports, at
// once if all have reported. It does not wait for a proxy that no longer announces itself, because
// that proxy has stopped or is disconnected.
func (r *run) awaitPauses(ctx context.Context, deadline time.Time) ([]quorum.PauseReport, error) {
	for {
		reports, missing := r.opts.Masters.PauseReports(ctx, r.at.Era)
		var unknown []string
		for _, h := range reports {
			switch h.Server {
			case "", r.upstreamRunID:
			case quorum.UnknownServer:
				unknown = append(unknown, h.Proxy)
			default:
				return nil, fmt.Errorf("proxy %s has a different upstream (run_id %s) than this proxy (run_id %s): "+
					"locks would be in two places; give all proxies the same upstream", h.Proxy, h.Server, r.upstreamRunID)
			}
		}
		switch at, known := r.opts.Masters.CurrentLocation(); {
		case known && at.Era != r.at.Era: // another run has ended the move or taken it over
			return nil, &quorum.WrongLocationError{Current: at}
		case len(missing) == 0 && len(unknown) == 0:
			// A proxy that cannot take part may have started meanwhile. A quorum may be lost for a
			// moment.
			err := r.opts.Masters.CheckMove()
			if _, noQuorum := errors.AsType[*quorum.NoQuorumError](err); !noQuorum || !time.Now().Before(deadline) {
				return reports, err
			}
		case !time.Now().Before(deadline) && len(missing) == 0:
			return nil, fmt.Errorf("proxies do not know the run_id of their upstream, so it may be a different one: %s; "+
				"permit INFO to their users there, and check that it is up", summarize(unknown))
		case !time.Now().Before(deadline):
			return nil, fmt.Errorf("proxies did not pause commands on lock keys in time: %s", summarize(missing))
		}
		if err := pacing.Sleep(ctx, pauseCheckInterval); err != nil {
			return nil, err
		}
	}
}

// foreignConnections returns the connections in earlierConns that are also in current, and so are
// still open. It leaves out replicas, the connection of this run, and connections that proxies
// reported as idle. direct describes those that may belong to clients that lock without a proxy: a
// move closes them only if the operator has ordered it. A move closes the others without asking:
// they are harmless, or a proxy reported that commands on lock keys may still be running on them.
func (r *run) foreignConnections(
	earlierConns, current []clientlist.Client, reports []quorum.PauseReport,
) (foreign []clientlist.Client, direct []string) {
	earlierIDs, idleAddrs, busyAddrs := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, c := range earlierConns {
		earlierIDs[c["id"]] = true
	}
	for _, h := range reports {
		for _, addr := range h.IdleConns {
			idleAddrs[clientlist.Address(addr)] = true
		}
		for _, addr := range h.BusyConns {
			busyAddrs[clientlist.Address(addr)] = true
		}
	}
	for _, c := range current {
		isReplica := strings.Contains(c["flags"], "S") // a replica sends no commands
		if !earlierIDs[c["id"]] || c["id"] == r.connID || idleAddrs[c.Addr()] || isReplica {
			continue
		}
		foreign = append(foreign, c)
		if !busyAddrs[c.Addr()] && !isHarmless(c) {
			direct = append(direct, c.String())
		}
	}
	return foreign, direct
}

// closeTimeout is the longest time that a connection may still be listed after CLIENT KILL.
const closeTimeout = 2 * time.Second

// closeConnections closes connections, and waits until they are gone.
func (r *run) closeConnections(ctx context.Context, conns []clientlist.Client) error {
	if len(conns) == 0 {
		return nil
	}
	commands, closedIDs := make([][]string, len(conns)), map[string]bool{}
	for i, c := range conns {
		commands[i], closedIDs[c["id"]] = []string{"CLIENT", "KILL", "ID", c["id"]}, true
	}
	if _, err := ask(ctx, r.conn, commands...); err != nil {
		return fmt.Errorf("cannot close connections at the upstream: %w", err)
	}
	for deadline := time.Now().Add(closeTimeout); ; {
		current, err := r.listConnections(ctx)
		if err != nil {
			return err
		}
		open := 0
		for _, c := range current {
			if closedIDs[c["id"]] {
				open++
			}
		}
		switch {
		case open == 0:
			closed := syntax.Count(len(conns), "connection")
			r.addLine("closed %s at the upstream", closed)
			r.logStep("closed %s at the upstream", closed)
			return nil
		case !time.Now().Before(deadline):
			return fmt.Errorf("cannot close %s at the upstream: still open %v after CLIENT KILL",
				syntax.Count(open, "connection"), closeTimeout)
		}
		if err := pacing.Sleep(ctx, pauseCheckInterval); err != nil {
			return err
		}
	}
}

// listConnections returns the connections of the upstream.
func (r *run) listConnections(ctx context.Context) ([]clientlist.Client, error) {
	replies, err := ask(ctx, r.conn, []string{"CLIENT", "LIST"})
	if err != nil {
		return nil, err
	}
	list, _ := replies[0].(string)
	if conns := clientlist.Parse(list); len(conns) > 0 {
		return conns, nil
	}
	return nil, errors.New("CLIENT LIST at the upstream lists no connection, not even the proxy's own")
}

// maxListed limits how many elements an error names.
const maxListed = 10

// summarize returns the first elements of a list, and the number of further elements.
func summarize(texts []string) string {
	if len(texts) <= maxListed {
		return strings.Join(texts, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(texts[:maxListed], ", "), len(texts)-maxListed)
}
