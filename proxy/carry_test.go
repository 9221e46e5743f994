package proxy_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"redlock-proxy/commands"
	"redlock-proxy/proxy"
	"redlock-proxy/quorum"
	"redlock-proxy/quorum/place"
)

// unmoved says that the locks are at the upstream, and stay there.
type unmoved struct{}

func (unmoved) Placed() (quorum.Placed, bool)                    { return quorum.Placed{Place: place.Upstream}, true }
func (unmoved) Departing() bool                                  { return false }
func (unmoved) Turned() <-chan struct{}                          { return nil }
func (u unmoved) Resting(context.Context) (quorum.Placed, error) { at, _ := u.Placed(); return at, nil }
func (u unmoved) Confirm(context.Context) (quorum.Placed, error) { at, _ := u.Placed(); return at, nil }
func (unmoved) SayHeld(context.Context, int, quorum.Held) error  { return nil }

// While the locks are at the upstream, commands on lock keys may be as long as any.
func TestLongCommandsOnLockKeysBeforeTheMove(t *testing.T) {
	server := startRedis(t)
	locks := newMemoryLocks()
	before := commands.NewRelayTable(commands.Options{Locks: memoryLocker{locks}, Settings: commands.Settings{MaxTTL: time.Hour}})
	p := startProxyWith(t, server.URL(), proxy.Options{Before: before, Places: unmoved{}}, []string{"lock:*"}).connect()
	p.say("SET lock:a 1", "+OK\r\n")
	mega := strings.Repeat("v", 1<<20)
	p.send(array("SET", "lock:a", mega) + cmd("STRLEN lock:a") + array("MSET", "lock:a", mega, "lock:b", mega) + array("EVAL", "return #ARGV[1]", "1", "lock:a", mega) + cmd("PING"))
	p.expect("+OK\r\n:1048576\r\n+OK\r\n:1048576\r\n+PONG\r\n")
}
