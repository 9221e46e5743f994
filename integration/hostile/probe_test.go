//go:build integration

package hostile

import (
	"context"
	"time"

	"redlock-proxy/internal/redistest"
)

// probe asks a server for a key now and then until ctx ends, and notes how long replies take.
func probe(ctx context.Context, l *ledger, what, addr string) {
	client, err := redistest.Dial(addr, patience)
	if err != nil {
		return
	}
	defer client.Close()
	for ctx.Err() == nil {
		sent := time.Now()
		if _, err := client.Do("GET", "ordinary"); err != nil {
			return
		}
		l.took(what, time.Since(sent))
		sleep(ctx, 2*time.Millisecond)
	}
}
