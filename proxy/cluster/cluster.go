package cluster

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"redlock-proxy/proxy/nodes"
	"redlock-proxy/proxy/upstream"
)

const (
	// pollInterval is the time between two polls of the nodes' tables.
	pollInterval = 3 * time.Second
	// minPollPause is the shortest time between two polls, however often clients report changes.
	minPollPause = 200 * time.Millisecond
	// refreshTimeout limits the wait for a poll.
	refreshTimeout = 2 * time.Second
)

// Options configures a Cluster. All fields are required.
type Options struct {
	// Seeds holds the addresses of nodes (host:port). One address suffices.
	Seeds []string
	// FirstPort and LastPort are the ports for the nodes.
	FirstPort, LastPort int
	// NewUpstream returns an upstream for a node. The upstream calls onUnreachable when it cannot
	// reach the node.
	NewUpstream func(onUnreachable func()) (*upstream.Upstream, error)
	// NewServer returns the server for the clients of a node.
	NewServer func(up *upstream.Upstream) Server
	// Listen listens for clients on a port.
	Listen func(ctx context.Context, port int) (net.Listener, error)
	// Now returns the time.
	Now func() time.Time
	// Logger gets the messages for operators.
	Logger *slog.Logger
}

// Server serves the clients of a node. A *proxy.Server implements it.
type Server interface {
	// Serve serves the clients of ln until ctx ends, and then drains.
	Serve(ctx context.Context, ln net.Listener) error
	// Connections returns the number of connected clients.
	Connections() int
}

// Cluster follows the nodes of a cluster, and serves each node at its own port.
type Cluster struct {
	opts     Options
	seeds    []*upstream.Upstream
	entrance *upstream.Upstream

	// These fields belong to the goroutine of Run.
	ports *nodes.Ports
	// members holds the nodes by their IDs. A change also requires mu.
	members        map[string]*member
	pollCount      int            // counts the polls, so that each asks different nodes
	running        sync.WaitGroup // the goroutines that serve members
	portsExhausted bool           // the lack of free ports was logged

	mu sync.Mutex
	// nodeMap, listedMembers and table come from the last successful poll. pollErr points to the
	// error of the last poll, or to nil if it succeeded.
	nodeMap       atomic.Pointer[nodes.Map]
	listedMembers atomic.Pointer[[]nodes.Member]
	table         atomic.Pointer[nodes.Table]
	pollErr       atomic.Pointer[error]
	// pollRequested holds a value if a poll is requested.
	pollRequested chan struct{}
	polls         polls
}

var (
	// errNodesUnknown is the error before the first poll.
	errNodesUnknown = errors.New("the nodes of the cluster are not known yet")
	errNoNode       = errors.New("no node of the cluster answers")
)

// New returns a Cluster. It connects to no node before Run.
func New(opts Options) (*Cluster, error) {
	c := &Cluster{
		opts: opts, ports: nodes.NewPorts(opts.FirstPort, opts.LastPort), members: map[string]*member{},
		pollRequested: make(chan struct{}, 1), polls: polls{changed: make(chan struct{})},
	}
	c.nodeMap.Store(nodes.NewMap(nil))
	c.table.Store(&nodes.Table{})
	c.listedMembers.Store(new([]nodes.Member))
	c.pollErr.Store(&errNodesUnknown)
	var err error
	if c.entrance, err = opts.NewUpstream(c.RequestRefresh); err != nil {
		return nil, err
	}
	for _, addr := range opts.Seeds {
		seed, err := opts.NewUpstream(func() {})
		if err != nil {
			return nil, err
		}
		seed.MoveTo("", addr)
		c.seeds = append(c.seeds, seed)
	}
	return c, nil
}

// Entrance returns the upstream of the listener that belongs to no node: a node that answers. The
// caller runs and closes it.
func (c *Cluster) Entrance() *upstream.Upstream { return c.entrance }

// Map returns the proxy's ports of the known nodes.
func (c *Cluster) Map() *nodes.Map { return c.nodeMap.Load() }

// Table returns the nodes and slots of the last successful poll.
func (c *Cluster) Table() nodes.Table { return *c.table.Load() }

// RequestRefresh requests a poll, because the nodes may have changed. It does not wait.
func (c *Cluster) RequestRefresh() {
	select {
	case c.pollRequested <- struct{}{}:
	default:
	}
}

// Run follows the nodes and serves them until serveCtx ends and the nodes' clients are drained. The
// nodes' upstreams run until then, unless ctx ends.
func (c *Cluster) Run(ctx, serveCtx context.Context) {
	defer c.close()
	tick := time.Tick(pollInterval)
	for serveCtx.Err() == nil {
		c.polls.begin()
		c.poll(ctx, serveCtx)
		c.polls.end()
		pause := time.After(minPollPause)
		select {
		case <-serveCtx.Done():
		case <-tick:
			c.ports.ClearUnusable()
		case <-c.pollRequested:
		}
		select {
		case <-serveCtx.Done():
		case <-pause:
		}
	}
}

// close ends all waits for polls, waits for the members' goroutines, and closes the seeds.
func (c *Cluster) close() {
	c.polls.stop()
	c.running.Wait()
	for _, seed := range c.seeds {
		seed.Close()
	}
}

// ForEach calls a function for all upstreams concurrently, and joins the errors. Any goroutine may
// call it.
func (c *Cluster) ForEach(call func(*upstream.Upstream) error) error {
	c.mu.Lock()
	all := append([]*upstream.Upstream{c.entrance}, c.seeds...)
	for _, m := range c.members {
		all = append(all, m.up)
	}
	c.mu.Unlock()
	errs := make([]error, len(all))
	var calls sync.WaitGroup
	for i, up := range all {
		calls.Go(func() { errs[i] = call(up) })
	}
	calls.Wait()
	return errors.Join(errs...)
}

// poll asks nodes for their tables, and adapts the members to the answers.
func (c *Cluster) poll(ctx, serveCtx context.Context) {
	tables, answered, err := c.ask(ctx)
	if len(tables) == 0 {
		if ctx.Err() == nil {
			c.recordFailure(err)
		}
		return
	}
	if before := c.pollErr.Swap(new(error)); *before != nil && !errors.Is(*before, errNodesUnknown) {
		c.opts.Logger.Info("the nodes of the cluster answer again")
	}
	table := nodes.Merge(tables)
	added, removed := c.ports.Update(table.Nodes, c.opts.Now())
	for _, m := range removed {
		c.remove(m)
	}
	for _, node := range added {
		c.add(ctx, serveCtx, node)
	}
	current := c.ports.Members()
	for _, m := range current {
		c.members[m.ID].follow(m, c.opts.Logger)
	}
	c.table.Store(&table)
	c.listedMembers.Store(&current)
	c.nodeMap.Store(nodes.NewMap(current))
	c.moveEntrance(answered)
}

// recordFailure records that no node has answered, and logs a new cause.
func (c *Cluster) recordFailure(err error) {
	before := *c.pollErr.Swap(&err)
	if before == nil || before.Error() != err.Error() {
		c.opts.Logger.Warn("no node of the cluster answers: its nodes stay as they were", "cause", err)
	}
	if len(c.members) == 0 {
		c.entrance.Forget(errNoNode) // clients see errNoNode, but err would name nodes
	}
}

// moveEntrance moves the entrance to a node that has answered, if its current node has not.
func (c *Cluster) moveEntrance(answeredIDs map[string]bool) {
	next := chooseEntrance(c.entrance.NodeID(), c.ports.Members(), answeredIDs)
	if next.ID != "" {
		c.entrance.MoveTo(next.ID, next.Addr())
	}
}

// chooseEntrance returns the node for the entrance: the current node if it has answered, else the
// first working master with slots that has answered, else any node that has answered. If no node
// has answered, the returned ID is empty.
func chooseEntrance(currentID string, members []nodes.Member, answered map[string]bool) nodes.Node {
	var master, fallback nodes.Node
	for _, m := range members {
		switch {
		case m.IsGone() || !answered[m.ID]:
		case m.ID == currentID:
			return m.Node
		case m.IsMaster() && !m.Failed && len(m.Slots) > 0:
			if master.ID == "" {
				master = m.Node
			}
		case fallback.ID == "":
			fallback = m.Node
		}
	}
	if master.ID != "" {
		return master
	}
	return fallback
}

// WaitFirstPoll waits for the first poll. It returns an error if that poll failed.
func (c *Cluster) WaitFirstPoll(ctx context.Context) error {
	if err := c.polls.wait(ctx, 1); err != nil {
		return err
	}
	return *c.pollErr.Load()
}

// Refresh requests a poll, waits for it, and returns the resulting map. A poll that already runs
// does not count.
func (c *Cluster) Refresh(ctx context.Context) *nodes.Map {
	ctx, cancel := context.WithTimeout(ctx, refreshTimeout)
	defer cancel()
	number := c.polls.next()
	c.RequestRefresh()
	_ = c.polls.wait(ctx, number) // without a poll, the map stays as it is
	return c.Map()
}
