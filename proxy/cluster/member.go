package cluster

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"

	"redlock-proxy/proxy/nodes"
	"redlock-proxy/proxy/upstream"
)

// errGone is the error of a node that the cluster no longer lists.
var errGone = errors.New("the node has left the cluster")

// member is a node that the proxy serves.
type member struct {
	up     *upstream.Upstream
	server Server
	gone   bool
	// stop ends the node's listener, and drains the node's clients.
	stop context.CancelFunc
}

// add serves a node at the next free port.
func (c *Cluster) add(ctx, serveCtx context.Context, node nodes.Node) {
	port, ln := c.listen(ctx, node)
	if ln == nil {
		return
	}
	up, err := c.opts.NewUpstream(c.RequestRefresh)
	if err != nil {
		c.opts.Logger.Error("cannot serve a node of the cluster", "node", node.ID, "cause", err)
		_ = ln.Close()
		return
	}
	up.MoveTo(node.ID, node.Addr())
	server := c.opts.NewServer(up)
	nodeCtx, stop := context.WithCancel(serveCtx)
	c.setMember(node.ID, &member{up: up, server: server, stop: stop})
	c.ports.Assign(node, port)
	c.running.Go(func() { c.serve(ctx, nodeCtx, up, ln, server) })
	c.opts.Logger.Info("serving a node of the cluster", "node", node.ID, "address", node.Addr(), "listen", ln.Addr().String())
}

// setMember adds a member, or removes the member if m is nil.
func (c *Cluster) setMember(id string, m *member) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m == nil {
		delete(c.members, id)
		return
	}
	c.members[id] = m
}

// serve runs the upstream and the server of a node until serveCtx ends and the node's clients are
// drained.
func (c *Cluster) serve(ctx, serveCtx context.Context, up *upstream.Upstream, ln net.Listener, server Server) {
	defer up.Close()
	ctx, stop := context.WithCancel(ctx)
	var probing sync.WaitGroup
	probing.Go(func() { _ = up.Run(ctx) })
	defer probing.Wait()
	defer stop()
	if err := server.Serve(serveCtx, ln); err != nil && !errors.Is(err, net.ErrClosed) {
		c.opts.Logger.Error("a node of the cluster is no longer served; restart the proxy",
			"listen", ln.Addr().String(), "cause", err)
	}
}

// listen listens on the next free port. ln is nil if no port is free.
func (c *Cluster) listen(ctx context.Context, node nodes.Node) (port int, ln net.Listener) {
	for {
		port, ok := c.ports.Next()
		if !ok {
			if !c.portsExhausted {
				c.portsExhausted = true
				c.opts.Logger.Error("a node of the cluster is not served: no port is left; extend cluster-ports",
					"node", node.ID, "address", node.Addr())
			}
			return 0, nil
		}
		ln, err := c.opts.Listen(ctx, port)
		if err == nil {
			c.portsExhausted = false
			return port, ln
		}
		if ctx.Err() != nil {
			return 0, nil
		}
		c.opts.Logger.Debug("a port for nodes of the cluster cannot be used", "port", port, "cause", err)
		c.ports.MarkUnusable(port)
	}
}

// follow adapts a member to the state that the cluster reports for its node.
func (m *member) follow(listedMember nodes.Member, log *slog.Logger) {
	switch {
	case listedMember.IsGone() && !m.gone:
		log.Warn("a node has left the cluster: clients find it unreachable", "node", listedMember.ID, "address", listedMember.Addr())
		m.up.Forget(errGone)
	case !listedMember.IsGone():
		if at := m.up.Name(); at != listedMember.Addr() && !m.gone {
			log.Info("a node of the cluster has a different address", "node", listedMember.ID, "from", at, "to", listedMember.Addr())
		}
		m.up.MoveTo(listedMember.ID, listedMember.Addr())
	}
	m.gone = listedMember.IsGone()
}

// remove ends the listener of a node that has left the cluster.
func (c *Cluster) remove(m nodes.Member) {
	c.members[m.ID].stop()
	c.setMember(m.ID, nil)
	c.opts.Logger.Info("a port of the cluster's nodes is free again", "node", m.ID, "port", m.ListenPort)
}
