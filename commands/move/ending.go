package move

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"redlock-proxy/internal/clientlist"
	"redlock-proxy/internal/pacing"
	"redlock-proxy/quorum"
)

// connection is one at the upstream, as CLIENT LIST shows it.
type connection struct{ id, addr, name, library, flags string }

// readConnections reads a reply to CLIENT LIST.
func readConnections(list string) []connection {
	var all []connection
	for _, c := range clientlist.Parse(list) {
		all = append(all, connection{c["id"], c.Addr(), c["name"], c["lib-name"], c["flags"]})
	}
	return all
}

// String is how an operator recognizes it.
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

// isReplica: it copies the upstream, and sends nothing.
func (c connection) isReplica() bool { return strings.Contains(c.flags, "S") }

// connectionName is what a mover's connection is called at the upstream.
const connectionName = "redlock-proxy-move"

// WatchName is what a connection is called on which a proxy only watches the upstream: it ends when
// the locks are moved, and is of nobody who locks.
const WatchName = "redlock-proxy-watch"

// isKnown: it only watches the upstream, as Sentinels and proxies do, or is that of another run. It
// is ended as any, but nobody is asked about it.
func (c connection) isKnown() bool {
	return strings.HasPrefix(c.name, "sentinel-") || c.name == connectionName || c.name == WatchName
}

// quiet returns when nothing that was sent before can change the locks at the upstream any more
// (rule 2).
func (r *run) quiet(ctx context.Context) error {
	before, err := r.connections(ctx)
	if err != nil {
		return err
	}
	held, err := r.await(ctx)
	if err != nil {
		return err
	}
	for _, h := range held {
		if h.Server != "" && h.Server != r.server {
			return fmt.Errorf("proxy %s has another upstream (run_id %s) than this one (%s): locks would be in two places", h.Proxy, h.Server, r.server)
		}
	}
	strange, held, err := r.strangers(ctx, before, held)
	if err != nil {
		return err
	}
	for _, c := range strange {
		if c.isOther(held) {
			r.result.Others = append(r.result.Others, c.String())
		}
	}
	if len(r.result.Others) > 0 && !r.order.EvenIfOthers {
		return &OthersError{r.result.Others}
	}
	return r.end(ctx, strange)
}

// tellTime is how long a proxy has to tell of connections that it made just before.
const tellTime = time.Second

// strangers are strange once those connections are told of that proxies made for clients that came
// while they said that they hold back.
func (r *run) strangers(ctx context.Context, before []connection, held []quorum.Held) (strange []connection, told []quorum.Held, err error) {
	for until := time.Now().Add(tellTime); ; {
		now, err := r.connections(ctx)
		if err != nil {
			return nil, nil, err
		}
		strange := r.strange(before, now, held)
		others := slices.ContainsFunc(strange, func(c connection) bool { return c.isOther(held) })
		if !others || !time.Now().Before(until) {
			return strange, held, nil
		}
		if err := pacing.Sleep(ctx, holdPause); err != nil {
			return nil, nil, err
		}
		held = r.opts.Masters.Holding(ctx, r.at.Era)
	}
}

// isOther: it may be of a client that locks there without a proxy.
func (c connection) isOther(held []quorum.Held) bool { return !c.isKnown() && !isRestless(held, c) }

// strange are the connections of before that are still there, and are neither this run's nor of a
// proxy that holds back.
func (r *run) strange(before, now []connection, held []quorum.Held) []connection {
	known, ours := map[string]bool{}, map[string]bool{}
	for _, c := range before {
		known[c.id] = true
	}
	for _, h := range held {
		for _, addr := range h.Resting {
			ours[clientlist.Address(addr)] = true
		}
	}
	var all []connection
	for _, c := range now {
		if known[c.id] && c.id != r.own && !ours[c.addr] && !c.isReplica() {
			all = append(all, c)
		}
	}
	return all
}

// isRestless reports whether a connection is that of a proxy over which something of lock keys may
// be under way still. It is ended, and nobody is asked.
func isRestless(held []quorum.Held, c connection) bool {
	return slices.ContainsFunc(held, func(h quorum.Held) bool {
		return slices.ContainsFunc(h.Restless, func(one string) bool { return clientlist.Address(one) == c.addr })
	})
}

// endTime is how long a connection may be listed after it was ended.
const endTime = 2 * time.Second

// end ends connections, and sees that they are gone.
func (r *run) end(ctx context.Context, connections []connection) error {
	if len(connections) == 0 {
		return nil
	}
	commands, ended := make([][]string, len(connections)), map[string]bool{}
	for i, c := range connections {
		commands[i], ended[c.id] = []string{"CLIENT", "KILL", "ID", c.id}, true
	}
	if _, err := asked(ctx, r.conn, commands...); err != nil {
		return fmt.Errorf("connections at the upstream cannot be ended: %w", err)
	}
	for until := time.Now().Add(endTime); ; {
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
			r.result.Ended = len(connections)
			r.say(fmt.Sprintf("%d connections at the upstream were ended", len(connections)))
			return nil
		case !time.Now().Before(until):
			return fmt.Errorf("%d connections at the upstream go on although they were ended", left)
		}
		if err := pacing.Sleep(ctx, holdPause); err != nil {
			return err
		}
	}
}

// connections are those at the upstream.
func (r *run) connections(ctx context.Context) ([]connection, error) {
	replies, err := asked(ctx, r.conn, []string{"CLIENT", "LIST"})
	if err != nil {
		return nil, err
	}
	list, _ := replies[0].(string)
	if all := readConnections(list); len(all) > 0 {
		return all, nil
	}
	return nil, errors.New("CLIENT LIST of the upstream shows nobody, not even this connection")
}

// OthersError says that others than proxies are connected to the upstream, where they may lock by
// themselves.
type OthersError struct {
	// Others are their connections.
	Others []string
}

// Error names some of them.
func (e *OthersError) Error() string {
	return fmt.Sprintf("%d connections at the upstream are of others than proxies that hold back, and may be of clients that lock there: %s; "+
		"if none of them takes locks there, --even-if-others (EVENIFOTHERS) ends them and goes on", len(e.Others), some(e.Others))
}

// shown is how many are named.
const shown = 10

// some are the first of several, and how many more there are.
func some(all []string) string {
	if len(all) <= shown {
		return strings.Join(all, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(all[:shown], ", "), len(all)-shown)
}
