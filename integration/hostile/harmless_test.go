//go:build integration

package hostile

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"time"
)

// harmlessAttacks returns clients that send ordinary commands without a pause. They only keep the
// machine busy.
func harmlessAttacks() []*attack {
	return []*attack{{name: "harmless reads", clients: 115, run: sendReads},
		{name: "harmless locks", clients: 115, run: sendLocks}}
}

// sendReads reads an ordinary key repeatedly. After each request, it waits for one more byte of the
// replies.
func sendReads(ctx context.Context, conn *net.TCPConn) {
	for range 100 {
		send(conn, command("GET", "ordinary"))
		readUpTo(ctx, conn, 1, time.Second)
		if ctx.Err() != nil {
			return
		}
	}
}

// sendLocks repeatedly takes and releases a lock that no other client uses. After each request, it
// waits for one more byte of the replies.
func sendLocks(ctx context.Context, conn *net.TCPConn) {
	key := fmt.Sprint("own", rand.Int())
	for range 100 {
		send(conn, command("LOCK", key, "t", "PX", "10000"))
		readUpTo(ctx, conn, 1, time.Second)
		send(conn, command("UNLOCK", key, "t"))
		readUpTo(ctx, conn, 1, time.Second)
		if ctx.Err() != nil {
			return
		}
	}
}
