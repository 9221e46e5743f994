//go:build integration

package hostile

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"time"
)

// harmless are clients that are as many, and do what anybody may without a pause: what they cost
// the honest ones is what a machine costs that is busy.
func harmless() []*attack {
	return []*attack{{name: "harmless reads", clients: 115, run: plainReads}, {name: "harmless locks", clients: 115, run: plainLocks}}
}

// plainReads asks for an ordinary key, and again as soon as it has the reply.
func plainReads(ctx context.Context, conn *net.TCPConn) {
	for range 100 {
		send(conn, command("GET", "ordinary"))
		hear(conn, 1, time.Second)
		if ctx.Err() != nil {
			return
		}
	}
}

// plainLocks takes a lock that nobody else wants and gives it back.
func plainLocks(ctx context.Context, conn *net.TCPConn) {
	key := fmt.Sprint("own", rand.Int())
	for range 100 {
		send(conn, command("LOCK", key, "t", "PX", "10000"))
		hear(conn, 1, time.Second)
		send(conn, command("UNLOCK", key, "t"))
		hear(conn, 1, time.Second)
		if ctx.Err() != nil {
			return
		}
	}
}
