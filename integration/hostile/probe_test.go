//go:build integration

package hostile

import (
	"context"
	"time"

	"redlock-proxy/internal/redistest"
)

// probe sends GETs to a server until ctx ends, and records the latencies of the replies.
func probe(ctx context.Context, l *lockRecord, name, addr string) {
	client, err := redistest.Dial(addr, replyTimeout)
	if err != nil {
		return
	}
	defer client.Close()
	for ctx.Err() == nil {
		sent := time.Now()
		if _, err := client.Do("GET", "ordinary"); err != nil {
			return
		}
		l.recordLatency(name, time.Since(sent))
		sleep(ctx, 2*time.Millisecond)
	}
}
