package move

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/internal/clientlist"
	"redlock-proxy/internal/pacing"
	"redlock-proxy/quorum"
)

// connection describes a connection of the upstream, as CLIENT LIST shows it.
type connection struct{ id, addr, name, library, flags string }

// readConnections parses a reply to CLIENT LIST.
func readConnections(list string) []connection {
	var conns []connection
	for _, c := range clientlist.Parse(list) {
		conns = append(conns, connection{c["id"], c.Addr(), c["name"], c["lib-name"], c["flags"]})
	}
	return conns
}

// String describes the connection for an operator.
func (c connection) String() string {
	text := c.addr
	if c.name != "" {
		text += " name=" + c.name
	}
	if c.library != "" {
		text += " lib-name=" + c.library
	}
	return text
}

// isReplica reports whether the connection is a replica's, which sends no commands.
func (c connection) isReplica() bool { return strings.Contains(c.flags, "S") }

// connectionName is the name of a mover's connection at the upstream.
const connectionName = "redlock-proxy-move"

// WatchName is the name of a connection on which a proxy only watches the upstream. No client takes
// locks over such a connection, so a move closes it without asking the operator.
const WatchName = "redlock-proxy-watch"

// isHarmless reports whether the connection only watches the upstream, like the connections of
// Sentinels and proxies, or belongs to another run. A move closes it without asking the operator.
func (c connection) isHarmless() bool {
	return strings.HasPrefix(c.name, "sentinel-") || c.name == connectionName || c.name == WatchName
}

// quiesce waits until no command sent earlier can still change the locks at the upstream (rule 2 of
// package location).
func (r *run) quiesce(ctx context.Context) error {
	before, err := r.listConnections(ctx)
	if err != nil {
		return err
	}
	reports, err := r.awaitPauses(ctx)
	if err != nil {
		return err
	}
	for _, h := range reports {
		if h.Server != "" && h.Server != r.upstreamRunID {
			return fmt.Errorf("proxy %s has a different upstream (run_id %s) than this proxy (run_id %s): "+
				"locks would be in two places; give all proxies the same upstream", h.Proxy, h.Server, r.upstreamRunID)
		}
	}
	foreign, reports, err := r.awaitForeignConns(ctx, before, reports)
	if err != nil {
		return err
	}
	var direct []string
	for _, c := range foreign {
		if c.mayLockDirectly(reports) {
			direct = append(direct, c.String())
		}
	}
	if len(direct) > 0 {
		if !r.request.CloseForeignConns {
			return &ForeignConnsError{direct}
		}
		r.addLine("connections of clients without a proxy at the upstream: %s", summarize(direct))
	}
	return r.closeConnections(ctx, foreign)
}

// reportTimeout is the time limit for proxies to report connections that they have just made.
const reportTimeout = time.Second

// awaitForeignConns returns the foreign connections, and the reports that it used. It first gives
// proxies time to report the connections that they made for new clients just before they paused.
func (r *run) awaitForeignConns(
	ctx context.Context, earlierConns []connection, latestReports []quorum.PauseReport,
) (foreignConns []connection, reports []quorum.PauseReport, err error) {
	for deadline := time.Now().Add(reportTimeout); ; {
		current, err := r.listConnections(ctx)
		if err != nil {
			return nil, nil, err
		}
		foreign := r.foreignConnections(earlierConns, current, latestReports)
		hasDirectClient := slices.ContainsFunc(foreign, func(c connection) bool { return c.mayLockDirectly(latestReports) })
		if !hasDirectClient || !time.Now().Before(deadline) {
			return foreign, latestReports, nil
		}
		if err := pacing.Sleep(ctx, pauseCheckInterval); err != nil {
			return nil, nil, err
		}
		latestReports = r.opts.Masters.PauseReports(ctx, r.at.Era)
	}
}

// mayLockDirectly reports whether the connection may belong to a client that locks without a proxy.
func (c connection) mayLockDirectly(reports []quorum.PauseReport) bool {
	return !c.isHarmless() && !isBusy(reports, c)
}

// foreignConnections returns the connections in earlierConns that are also in current, and so are
// still open. It leaves out replicas, the connection of this run, and connections that proxies
// reported as idle.
func (r *run) foreignConnections(earlierConns, current []connection, reports []quorum.PauseReport) []connection {
	earlierIDs, proxyAddrs := map[string]bool{}, map[string]bool{}
	for _, c := range earlierConns {
		earlierIDs[c.id] = true
	}
	for _, h := range reports {
		for _, addr := range h.IdleConns {
			proxyAddrs[clientlist.Address(addr)] = true
		}
	}
	var foreignConns []connection
	for _, c := range current {
		if earlierIDs[c.id] && c.id != r.connID && !proxyAddrs[c.addr] && !c.isReplica() {
			foreignConns = append(foreignConns, c)
		}
	}
	return foreignConns
}

// isBusy reports whether a proxy reported that commands on lock keys may still be running on the
// connection. A move closes such a connection without asking the operator.
func isBusy(reports []quorum.PauseReport, c connection) bool {
	return slices.ContainsFunc(reports, func(h quorum.PauseReport) bool {
		return slices.ContainsFunc(h.BusyConns, func(addr string) bool { return clientlist.Address(addr) == c.addr })
	})
}

// closeTimeout is the longest time that a connection may still be listed after CLIENT KILL.
const closeTimeout = 2 * time.Second

// closeConnections closes connections, and waits until they are gone.
func (r *run) closeConnections(ctx context.Context, conns []connection) error {
	if len(conns) == 0 {
		return nil
	}
	commands, closedIDs := make([][]string, len(conns)), map[string]bool{}
	for i, c := range conns {
		commands[i], closedIDs[c.id] = []string{"CLIENT", "KILL", "ID", c.id}, true
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
			if closedIDs[c.id] {
				open++
			}
		}
		switch {
		case open == 0:
			text := "closed " + syntax.Count(len(conns), "connection") + " at the upstream"
			r.addLine("%s", text)
			r.report(text)
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
func (r *run) listConnections(ctx context.Context) ([]connection, error) {
	replies, err := ask(ctx, r.conn, []string{"CLIENT", "LIST"})
	if err != nil {
		return nil, err
	}
	list, _ := replies[0].(string)
	if conns := readConnections(list); len(conns) > 0 {
		return conns, nil
	}
	return nil, errors.New("CLIENT LIST at the upstream lists no connection, not even the proxy's own")
}

// ForeignConnsError reports connections at the upstream that do not belong to proxies. Their
// clients may lock without a proxy.
type ForeignConnsError struct {
	// Conns describes the connections.
	Conns []string
}

// Error returns some of the connections, and a remedy.
func (e *ForeignConnsError) Error() string {
	return fmt.Sprintf("connections at the upstream may belong to clients that lock there: %s; "+
		"if none of these clients takes locks, --even-if-others (EVENIFOTHERS) closes the connections and continues",
		summarize(e.Conns))
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
