// Package pushconn maintains push connections. On a push connection a master sends RESP3 push
// messages: changes of keys (package watch) or messages of clients (package messages). A
// [Reconnector] connects again while the connection is wanted.
package pushconn

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

// Server describes a master to a push connection.
type Server interface {
	// Name returns the address of the master.
	Name() string
	// IsDown reports whether the master is down, as far as this process knows.
	IsDown() bool
	// Watch returns a new connection to a database, logged in.
	Watch(ctx context.Context, db int) (net.Conn, error)
}

// IdleTimeout is the time for which a push connection stays open after it is no longer wanted.
const IdleTimeout = 10 * time.Second

const (
	// shortestPause and longestPause limit the pause before the next attempt to connect.
	shortestPause = 25 * time.Millisecond
	longestPause  = time.Second
	// refusedPause is the pause if the master refused the request.
	refusedPause = 10 * time.Second
	// downPause is the pause between two checks whether a master is back.
	downPause = 50 * time.Millisecond
)

// Reconnector maintains one push connection. All fields must be set.
type Reconnector struct {
	Server Server
	// Rand returns numbers in [0, 1).
	Rand func() float64
	// Wanted reports whether a connection is wanted. Otherwise Run returns.
	Wanted func() bool
	// Connect connects, and receives from the master until the connection ends. Then Run calls
	// OnEnd with the error, which is a *contained.PanicError if Connect panicked.
	Connect func() error
	OnEnd   func(error)
}

// Run connects again and again while a connection is wanted. It ends a pause when ctx ends.
func (k Reconnector) Run(ctx context.Context) {
	pause := pacing.Pauses{MinPause: shortestPause, MaxPause: longestPause, Rand: k.Rand}
	for k.Wanted() {
		if k.Server.IsDown() {
			_ = pacing.Sleep(ctx, downPause)
			continue
		}
		start := time.Now()
		err := contained.Run(k.Connect)
		k.OnEnd(err)
		if time.Since(start) >= longestPause {
			pause.Reset() // the connection lasted for a while
		}
		if IsRefusal(err) {
			_ = pacing.Sleep(ctx, refusedPause)
		} else if k.Wanted() {
			_ = pacing.Sleep(ctx, pause.Next())
		}
	}
}

// IsRefusal reports whether a master refuses the requests of a push connection permanently, because
// a right, a valid login or a command is missing.
func IsRefusal(err error) bool {
	reply := resp.Error("")
	if !errors.As(err, &reply) {
		return false
	}
	code, _, _ := strings.Cut(string(reply), " ")
	return code == "NOPERM" || code == "NOPROTO" || code == "NOAUTH" || code == "WRONGPASS" || code == "ERR"
}
