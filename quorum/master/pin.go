package master

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"redlock-proxy/quorum/guard"
)

// errOtherServer is the cause of a connection that reached another server, or another
// life of it, than those before.
var errOtherServer = errors.New("it is another server process than before")

// Pin has every connection reach the same life of the same server: a batch that follows on
// a broken connection is never taken for one on the server before.
func (t *redisTransport) Pin(lost func()) {
	t.lost = lost
	t.options.OnConnect = t.identify
}

// identify asks a new connection for the server's run_id. Servers that do not report theirs
// are not distinguished.
func (t *redisTransport) identify(ctx context.Context, conn *redis.Conn) error {
	text, err := conn.Info(ctx, "server").Result()
	var said redis.Error
	if err != nil && !errors.As(err, &said) {
		return err
	}
	runID := guard.ReadInfo(text).RunID
	if !t.meets(runID) {
		t.lost()
		return errOtherServer
	}
	return nil
}

// meets reports whether a connection reached the server that it should, or the first one.
func (t *redisTransport) meets(runID string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.runID == "" {
		t.runID = runID
	}
	return t.runID == runID
}

// renew lets the next connection reach another server than those before, which are
// closed.
func (t *redisTransport) renew() {
	t.lost()
	t.Close()
}
