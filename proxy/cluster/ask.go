package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"redlock-proxy/proxy/nodes"
	"redlock-proxy/proxy/upstream"
)

const (
	// maxNodesPerPoll limits the number of nodes that one poll asks.
	maxNodesPerPoll = 5
	// askTimeout limits the wait for the answers. askGrace limits the wait for further answers
	// after the first.
	askTimeout = time.Second
	askGrace   = 100 * time.Millisecond
)

// errUnexpectedNode reports that a different node than expected has answered.
var errUnexpectedNode = errors.New("a different node answers at its address")

// ask asks some of the nodes for their tables, and the seeds if no node answers. answeredIDs holds
// the IDs of the nodes that have answered. If there is no table, err holds the reasons.
func (c *Cluster) ask(ctx context.Context) (tables []nodes.Table, answeredIDs map[string]bool, err error) {
	c.pollCount++
	known := c.candidates()
	tables, err = askAll(ctx, known)
	if len(known) > 1 {
		tables = withoutSingleNodeTables(tables)
	}
	if len(tables) == 0 {
		var all []candidate
		for _, seed := range c.seeds {
			all = append(all, candidate{up: seed})
		}
		var seedErr error
		tables, seedErr = askAll(ctx, all)
		err = errors.Join(err, seedErr)
	}
	answeredIDs = map[string]bool{}
	for _, table := range tables {
		answeredIDs[table.Self] = true
	}
	return tables, answeredIDs, err
}

// withoutSingleNodeTables removes the tables that list only one node. Such a node was removed from
// the cluster and reset, and its table would keep it listed.
func withoutSingleNodeTables(tables []nodes.Table) []nodes.Table {
	return slices.DeleteFunc(tables, func(t nodes.Table) bool { return len(t.Nodes) < 2 })
}

// candidate is a server to ask. id is its node ID; empty if any node may answer.
type candidate struct {
	up *upstream.Upstream
	id string
}

// candidates returns the nodes to ask: first the node of the entrance, then other nodes in turn.
func (c *Cluster) candidates() []candidate {
	members := slices.DeleteFunc(c.ports.Members(), nodes.Member.IsGone)
	if len(members) == 0 {
		return nil
	}
	start := c.pollCount * (maxNodesPerPoll - 1) % len(members)
	members = slices.Concat(members[start:], members[:start])
	if at := slices.IndexFunc(members, func(m nodes.Member) bool { return m.ID == c.entrance.NodeID() }); at > 0 {
		members = slices.Insert(slices.Delete(slices.Clone(members), at, at+1), 0, members[at])
	}
	var all []candidate
	for _, m := range members[:min(maxNodesPerPoll, len(members))] {
		all = append(all, candidate{c.members[m.ID].up, m.ID})
	}
	return all
}

// askAll asks all candidates concurrently, and returns the tables that arrive in time.
func askAll(ctx context.Context, candidates []candidate) (tables []nodes.Table, err error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	type answer struct {
		table nodes.Table
		err   error
	}
	answers := make(chan answer, len(candidates))
	for _, from := range candidates {
		go func() { // ends with ctx
			table, err := from.up.NodeTable(ctx)
			if err == nil && from.id != "" && table.Self != from.id {
				err = errUnexpectedNode
			}
			if err != nil {
				err = fmt.Errorf("%s: %w", from.up.Name(), err)
			}
			answers <- answer{table, err}
		}()
	}
	var grace <-chan time.Time
	var failures []error
	for range candidates {
		select {
		case a := <-answers:
			if a.err != nil {
				failures = append(failures, a.err)
				continue
			}
			if tables = append(tables, a.table); grace == nil {
				grace = time.After(askGrace)
			}
		case <-grace:
			return tables, nil
		case <-ctx.Done():
			return tables, errors.Join(append(failures, errors.New("some nodes did not reply in time"))...)
		}
	}
	return tables, errors.Join(failures...)
}
