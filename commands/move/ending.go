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

// connection is a connection of the upstream, as CLIENT LIST shows it.
type connection struct{ id, addr, name, library, flags string }

// readConnections parses a reply to CLIENT LIST.
func readConnections(list string) []connection {
	var all []connection
	for _, c := range clientlist.Parse(list) {
		all = append(all, connection{c["id"], c.Addr(), c["name"], c["lib-name"], c["flags"]})
	}
	return all
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

// WatchName is the name of a connection on which a proxy only watches the upstream. A move closes
// it, but no client that locks uses it.
const WatchName = "redlock-proxy-watch"

// mayClose reports whether the connection only watches the upstream, like the connections of
// Sentinels and proxies, or belongs to another run. A move closes it without asking the operator.
func (c connection) mayClose() bool {
	return strings.HasPrefix(c.name, "sentinel-") || c.name == connectionName || c.name == WatchName
}

// quiesce returns when no command sent before can still change the locks at the upstream (rule 2).
func (r *run) quiesce(ctx context.Context) error {
	before, err := r.connections(ctx)
	if err != nil {
		return err
	}
	held, err := r.awaitHolding(ctx)
	if err != nil {
		return err
	}
	for _, h := range held {
		if h.Server != "" && h.Server != r.server {
			return fmt.Errorf("proxy %s has a different upstream (run_id %s) than this proxy (run_id %s): "+
				"locks would be in two places; give all proxies the same upstream", h.Proxy, h.Server, r.server)
		}
	}
	foreign, held, err := r.awaitForeign(ctx, before, held)
	if err != nil {
		return err
	}
	for _, c := range foreign {
		if c.mayLockDirectly(held) {
			r.result.ForeignConns = append(r.result.ForeignConns, c.String())
		}
	}
	if len(r.result.ForeignConns) > 0 && !r.order.CloseOthers {
		return &ForeignConnsError{r.result.ForeignConns}
	}
	return r.closeConnections(ctx, foreign)
}

// reportTimeout is how long a proxy has to report connections that it has just made.
const reportTimeout = time.Second

// awaitForeign returns foreign connections. It first gives proxies time to report the connections
// that they made for new clients just before they paused.
func (r *run) awaitForeign(
	ctx context.Context, before []connection, held []quorum.PauseReport,
) (foreign []connection, reports []quorum.PauseReport, err error) {
	for until := time.Now().Add(reportTimeout); ; {
		now, err := r.connections(ctx)
		if err != nil {
			return nil, nil, err
		}
		foreign := r.foreign(before, now, held)
		others := slices.ContainsFunc(foreign, func(c connection) bool { return c.mayLockDirectly(held) })
		if !others || !time.Now().Before(until) {
			return foreign, held, nil
		}
		if err := pacing.Sleep(ctx, holdPause); err != nil {
			return nil, nil, err
		}
		held = r.opts.Masters.PauseReports(ctx, r.at.Era)
	}
}

// mayLockDirectly reports whether the connection may belong to a client that locks without a proxy.
func (c connection) mayLockDirectly(held []quorum.PauseReport) bool {
	return !c.mayClose() && !isRestless(held, c)
}

// foreign returns the connections of before that are still open, and belong neither to this run nor
// to a proxy that has paused its commands.
func (r *run) foreign(before, now []connection, held []quorum.PauseReport) []connection {
	known, ours := map[string]bool{}, map[string]bool{}
	for _, c := range before {
		known[c.id] = true
	}
	for _, h := range held {
		for _, addr := range h.IdleConns {
			ours[clientlist.Address(addr)] = true
		}
	}
	var all []connection
	for _, c := range now {
		if known[c.id] && c.id != r.connID && !ours[c.addr] && !c.isReplica() {
			all = append(all, c)
		}
	}
	return all
}

// isRestless reports whether a proxy reported that commands on lock keys may still be running on
// the connection. A move closes it without asking the operator.
func isRestless(held []quorum.PauseReport, c connection) bool {
	return slices.ContainsFunc(held, func(h quorum.PauseReport) bool {
		return slices.ContainsFunc(h.BusyConns, func(one string) bool { return clientlist.Address(one) == c.addr })
	})
}

// closeTimeout is how long a connection may still be listed after CLIENT KILL.
const closeTimeout = 2 * time.Second

// closeConnections closes connections, and waits until they are gone.
func (r *run) closeConnections(ctx context.Context, ending []connection) error {
	if len(ending) == 0 {
		return nil
	}
	commands, ended := make([][]string, len(ending)), map[string]bool{}
	for i, c := range ending {
		commands[i], ended[c.id] = []string{"CLIENT", "KILL", "ID", c.id}, true
	}
	if _, err := ask(ctx, r.conn, commands...); err != nil {
		return fmt.Errorf("cannot close connections at the upstream: %w", err)
	}
	for until := time.Now().Add(closeTimeout); ; {
		now, err := r.connections(ctx)
		if err != nil {
			return err
		}
		left := 0
		for _, c := range now {
			if ended[c.id] {
				left++
			}
		}
		switch {
		case left == 0:
			r.result.Ended = len(ending)
			r.report("closed " + syntax.Count(len(ending), "connection") + " at the upstream")
			return nil
		case !time.Now().Before(until):
			return fmt.Errorf("cannot close %s at the upstream: still open %v after CLIENT KILL",
				syntax.Count(left, "connection"), closeTimeout)
		}
		if err := pacing.Sleep(ctx, holdPause); err != nil {
			return err
		}
	}
}

// connections returns the connections of the upstream.
func (r *run) connections(ctx context.Context) ([]connection, error) {
	replies, err := ask(ctx, r.conn, []string{"CLIENT", "LIST"})
	if err != nil {
		return nil, err
	}
	list, _ := replies[0].(string)
	if all := readConnections(list); len(all) > 0 {
		return all, nil
	}
	return nil, errors.New("CLIENT LIST at the upstream lists no connection, not even the proxy's own")
}

// ForeignConnsError reports connections at the upstream that do not belong to proxies, whose
// clients may lock without a proxy.
type ForeignConnsError struct {
	// Conns describes the connections.
	Conns []string
}

// Error names some of the connections.
func (e *ForeignConnsError) Error() string {
	return fmt.Sprintf("connections at the upstream may belong to clients that lock there: %s; "+
		"if none of these clients takes locks, --even-if-others (EVENIFOTHERS) closes the connections and continues",
		summarize(e.Conns))
}

// maxNamed limits how many elements an error names.
const maxNamed = 10

// summarize returns the first elements of a list, and the number of further elements.
func summarize(all []string) string {
	if len(all) <= maxNamed {
		return strings.Join(all, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(all[:maxNamed], ", "), len(all)-maxNamed)
}
