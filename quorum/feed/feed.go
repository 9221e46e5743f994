// Package feed keeps connections on which a master reports what happens there, without being asked
// each time: changes of keys (package wake), of messages (package messages). A feed speaks RESP3,
// and is made again and again while it is wanted.
package feed

import (
	"context"
	"errors"
	"net"
	"strings"
	"time"

	"redlock-proxy/internal/contained"
	"redlock-proxy/internal/pacing"
	"redlock-proxy/internal/resp"
)

// Server is a master as a feed needs it.
type Server interface {
	// Name is its address.
	Name() string
	// IsDown reports whether it is known not to answer.
	IsDown() bool
	// Watch makes a connection to a database, logged in.
	Watch(ctx context.Context, db int) (net.Conn, error)
}

// Linger is how long a feed stays connected when it is wanted no more.
const Linger = 10 * time.Second

const (
	// shortestPause and longestPause bound the wait before a connection is tried again.
	shortestPause = 25 * time.Millisecond
	longestPause  = time.Second
	// refusedPause is that wait where the master refuses what was asked.
	refusedPause = 10 * time.Second
	// downPause is the wait between two looks whether a master that is down is back.
	downPause = 50 * time.Millisecond
)

// Keeper keeps one feed. All must be set.
type Keeper struct {
	Server Server
	// Rand gives numbers in [0, 1).
	Rand func() float64
	// Wanted reports whether a connection is wanted. Where it is not, Keep is over.
	Wanted func() bool
	// Once connects, and takes what the master sends until the connection ends; Ended is called
	// with the cause. A panic of Once is a *contained.PanicError there.
	Once  func() error
	Ended func(error)
}

// Keep connects again and again, as long as that is wanted. Its pauses end with ctx.
func (k Keeper) Keep(ctx context.Context) {
	pause := pacing.Pauses{Shortest: shortestPause, Longest: longestPause, Rand: k.Rand}
	for k.Wanted() {
		if k.Server.IsDown() {
			_ = pacing.Sleep(ctx, downPause)
			continue
		}
		begun := time.Now()
		err := contained.Run(k.Once)
		k.Ended(err)
		if time.Since(begun) >= longestPause {
			pause.Reset() // it lasted for a while
		}
		if IsRefusal(err) {
			_ = pacing.Sleep(ctx, refusedPause)
		} else if k.Wanted() {
			_ = pacing.Sleep(ctx, pause.Next())
		}
	}
}

// IsRefusal reports whether a master does not do what a feed asks, for want of a right or of the
// command, rather than not now.
func IsRefusal(err error) bool {
	said := resp.Error("")
	if !errors.As(err, &said) {
		return false
	}
	code, _, _ := strings.Cut(string(said), " ")
	return code == "NOPERM" || code == "NOPROTO" || code == "NOAUTH" || code == "WRONGPASS" || code == "ERR"
}
