package master

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"redlock-proxy/quorum/guard"
)

// errDifferentServer is the cause if a connection reached another server process than earlier
// connections.
var errDifferentServer = errors.New("it is a different server process than before")

// PinServer implements Transport. With pinned connections, the guard never attributes a batch that
// follows a broken connection to the earlier process.
func (t *redisTransport) PinServer(beforeNewServer func()) {
	t.beforeNewServer = beforeNewServer
	t.options.OnConnect = t.identify
}

// identify checks the run_id of the server of a new connection. It cannot distinguish servers that
// do not report a run_id.
func (t *redisTransport) identify(ctx context.Context, conn *redis.Conn) error {
	text, err := conn.Info(ctx, "server").Result()
	var refusal redis.Error
	if err != nil && !errors.As(err, &refusal) {
		return err
	}
	runID := guard.ReadInfo(text).RunID
	if !t.isExpectedServer(runID) {
		t.beforeNewServer()
		return errDifferentServer
	}
	return nil
}

// isExpectedServer reports whether a connection reached the expected server. If the transport
// expects no server yet, it expects this server from now on.
func (t *redisTransport) isExpectedServer(runID string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.runID == "" {
		t.runID = runID
	}
	return t.runID == runID
}

// acceptNewServer closes all connections, and lets the next connection reach another server
// process.
func (t *redisTransport) acceptNewServer() {
	t.beforeNewServer()
	t.Close()
}
