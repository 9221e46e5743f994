//go:build integration

package relay

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"redlock-proxy/integration/harness"
	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// stalledKey is a lock key of which a few values are more than any socket holds.
const stalledKey = "lock:big"

// stall has a client ask for more replies of the proxy's own than its socket takes. It reads none.
func stall(t *testing.T, client *redistest.Client) {
	t.Helper()
	kit.Must(t, client.Send([]byte(strings.Repeat(string(redistest.AppendCommand(nil, "GET", stalledKey)), 24))))
	time.Sleep(300 * time.Millisecond) // so that most runs find it writing
}

// startStalled starts a proxy with users of its own, of which app is one until the file is written
// anew.
func startStalled(t *testing.T, args ...string) (r *relay, users string, op *redistest.Client) {
	t.Helper()
	upstream := kit.StartRedis(t)
	users = filepath.Join(t.TempDir(), "users.acl")
	writeUsers(t, users, "user app on >app ~* &* +@all\nuser slow on >slow ~* &* +@all")
	args = append(kit.LockKeyArgs(upstream), append([]string{"--guard=false", "--acl-file", users}, args...)...)
	r = &relay{upstream, kit.StartProxy(t, redistest.URLs(kit.StartMasters(t)), args...)}
	op = as(t, r.proxy, "op")
	kit.Want(t, op, "OK", "SET", stalledKey, strings.Repeat("x", 900<<10))
	return r, users, op
}

func writeUsers(t *testing.T, file, more string) {
	t.Helper()
	kit.Must(t, os.WriteFile(file, []byte("user default off\nuser op on >op ~* &* +@all\n"+more+"\n"), 0o600))
}

// as connects a client that logs in, by a password that is its name.
func as(t *testing.T, proxy *harness.Proxy, user string) *redistest.Client {
	t.Helper()
	client := kit.Connect(t, proxy)
	kit.Want(t, client, "OK", "AUTH", user, user)
	return client
}

// listening is a client that speaks RESP3 and is subscribed to news.
func listening(t *testing.T, proxy *harness.Proxy, user string) *redistest.Client {
	t.Helper()
	client := as(t, proxy, user)
	kit.Do(t, client, "HELLO", "3")
	kit.Do(t, client, "SUBSCRIBE", "news")
	return client
}

// Clients that leave replies of the proxy's own unread while their upstream connections are killed,
// and a message for some of them comes, keep nobody else waiting: neither those that are idle, nor
// who kills them.
func TestStalledClientIsKilledAtTheUpstream(t *testing.T) {
	r, _, op := startStalled(t)
	idle := make([]*redistest.Client, 10)
	for i := range idle {
		idle[i] = as(t, r.proxy, "op")
		kit.Want(t, idle[i], nil, "GET", "none")
		idle[i].SetTimeout(kit.Patience / 2) // a stalled client whose upstream is gone is disconnected after a minute, which is too late
	}
	time.Sleep(3 * time.Second) // longer than a client is quiet before it is parked
	for _, stalled := range []*redistest.Client{listening(t, r.proxy, "app"), as(t, r.proxy, "app"), as(t, r.proxy, "app")} {
		id := kit.Do(t, stalled, "CLIENT", "ID")
		stall(t, stalled)
		kit.Do(t, op, "PUBLISH", "news", "x")
		kit.Want(t, op, int64(1), "CLIENT", "KILL", "ID", fmt.Sprint(id))
	}
	for _, client := range idle {
		kit.Want(t, client, "PONG", "PING", "PONG")
		kit.Want(t, client, nil, "GET", "none")
	}
}

// Users are read again, by all ways, while clients of one that is another now, or gone, leave
// replies unread. Who is gone hears nothing more.
func TestUsersAreReadAgainBesideStalledClients(t *testing.T) {
	redistest.SkipShort(t)
	r, file, op := startStalled(t)
	var subscribers []*redistest.Client
	for range 20 {
		subscribers = append(subscribers, listening(t, r.proxy, "app"))
	}
	for _, user := range []string{"app", "op", "slow", "slow"} {
		stall(t, as(t, r.proxy, user))
	}
	writeUsers(t, file, "user slow on >slow ~lock:* &* +@all")
	kit.Want(t, op, "OK", "ACL", "LOAD")
	for _, client := range subscribers {
		if got, err := client.Receive(); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("a subscriber whose user is gone: got %v, %v", got, err)
		}
	}
	writeUsers(t, file, "user next on >next ~* &* +@all\nuser slow on >slow ~lock:b* &* +@all")
	kit.Must(t, r.proxy.Signal(syscall.SIGHUP))
	kit.Soon(t, func() error {
		if reply := kit.Do(t, kit.Connect(t, r.proxy), "AUTH", "next", "next"); reply != "OK" {
			return fmt.Errorf("AUTH after SIGHUP: %v", reply)
		}
		return nil
	})
	kit.Do(t, op, "PROXY", "RELOAD")
	kit.Want(t, op, "OK", "ACL", "LOAD")
}

// What a client tracks and does not read is nothing to others that track the same.
func TestInvalidationsBesideAStalledClient(t *testing.T) {
	redistest.SkipShort(t)
	r, _, op := startStalled(t)
	tracks := func() *redistest.Client {
		client := listening(t, r.proxy, "app")
		kit.Want(t, client, "OK", "CLIENT", "TRACKING", "ON")
		kit.Want(t, client, nil, "GET", "lock:small")
		return client
	}
	stalled, honest := tracks(), tracks()
	stall(t, stalled)
	kit.Want(t, op, "OK", "SET", "lock:small", "1")
	got, err := honest.Receive()
	kit.Must(t, err)
	if fmt.Sprint(got) != "[invalidate [lock:small]]" {
		t.Errorf("got %v", got)
	}
	kit.Want(t, honest, "PONG", "PING", "PONG")
}

// A proxy that is asked to stop ends by its drain-timeout, whoever leaves his replies unread.
func TestDrainBesideStalledClients(t *testing.T) {
	redistest.SkipShort(t)
	r, _, _ := startStalled(t, "--drain-timeout", "1s")
	for range 3 {
		stall(t, listening(t, r.proxy, "app"))
	}
	kit.Must(t, r.proxy.Signal(syscall.SIGTERM))
	if code, err := r.proxy.Wait(kit.Patience); err != nil || code != 0 {
		t.Errorf("exit code %d, %v", code, err)
	}
}
