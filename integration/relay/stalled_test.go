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

// stalledKey is a lock key with a large value: a few replies with it exceed every socket buffer.
const stalledKey = "lock:big"

// sendUnread sends commands whose replies exceed every socket buffer. It reads no reply.
func sendUnread(t *testing.T, client *redistest.Client) {
	t.Helper()
	kit.Must(t, client.Send([]byte(strings.Repeat(string(redistest.AppendCommand(nil, "GET", stalledKey)), 24))))
	time.Sleep(300 * time.Millisecond) // so that the proxy is writing in most runs
}

// startStalledRelay starts a proxy with a file of users, and sets stalledKey. operatorClient may
// change the users.
func startStalledRelay(t *testing.T, args ...string) (r *relay, users string, operatorClient *redistest.Client) {
	t.Helper()
	upstream := kit.StartRedis(t)
	users = filepath.Join(t.TempDir(), "users.acl")
	writeUsers(t, users, "user app on >app ~* &* +@all\nuser slow on >slow ~* &* +@all")
	args = append(kit.LockKeyArgs(upstream), append([]string{"--guard=false", "--acl-file", users}, args...)...)
	r = &relay{upstream, kit.StartProxy(t, redistest.URLs(kit.StartMasters(t)), args...)}
	operatorClient = connectAs(t, r.proxy, "op")
	kit.Want(t, operatorClient, "OK", "SET", stalledKey, strings.Repeat("x", 900<<10))
	return r, users, operatorClient
}

func writeUsers(t *testing.T, file, rules string) {
	t.Helper()
	kit.Must(t, os.WriteFile(file, []byte("user default off\nuser op on >op ~* &* +@all\n"+rules+"\n"), 0o600))
}

// connectAs connects a client, and logs in as a user whose password equals the user name.
func connectAs(t *testing.T, proxy *harness.Proxy, user string) *redistest.Client {
	t.Helper()
	client := kit.Connect(t, proxy)
	kit.Want(t, client, "OK", "AUTH", user, user)
	return client
}

// subscribedClient returns a RESP3 client that is subscribed to the channel news.
func subscribedClient(t *testing.T, proxy *harness.Proxy, user string) *redistest.Client {
	t.Helper()
	client := connectAs(t, proxy, user)
	kit.Do(t, client, "HELLO", "3")
	kit.Do(t, client, "SUBSCRIBE", "news")
	return client
}

// TestStalledClientKilledAtUpstream kills the upstream connections of clients that leave replies of
// the proxy unread; some of these clients get a message. The stalled clients delay neither idle
// clients nor the client that kills the connections.
func TestStalledClientKilledAtUpstream(t *testing.T) {
	r, _, op := startStalledRelay(t)
	idleClients := make([]*redistest.Client, 10)
	for i := range idleClients {
		idleClients[i] = connectAs(t, r.proxy, "op")
		kit.Want(t, idleClients[i], nil, "GET", "none")
		// The proxy disconnects a stalled client without an upstream connection after a minute,
		// which is too late for this test.
		idleClients[i].SetTimeout(kit.WaitLimit / 2)
	}
	time.Sleep(3 * time.Second) // long enough for the proxy to park the silent clients
	for _, stalledClient := range []*redistest.Client{subscribedClient(t, r.proxy, "app"), connectAs(t, r.proxy, "app"),
		connectAs(t, r.proxy, "app")} {
		id := kit.Do(t, stalledClient, "CLIENT", "ID")
		sendUnread(t, stalledClient)
		kit.Do(t, op, "PUBLISH", "news", "x")
		kit.Want(t, op, int64(1), "CLIENT", "KILL", "ID", fmt.Sprint(id))
	}
	for _, client := range idleClients {
		kit.Want(t, client, "PONG", "PING", "PONG")
		kit.Want(t, client, nil, "GET", "none")
	}
}

// TestUsersReloadedWithStalledClients reloads the users, by ACL LOAD, SIGHUP and PROXY RELOAD,
// while clients of a changed or removed user leave replies unread. Clients of removed users get no
// further messages.
func TestUsersReloadedWithStalledClients(t *testing.T) {
	redistest.SkipShort(t)
	r, file, op := startStalledRelay(t)
	var subscribers []*redistest.Client
	for range 20 {
		subscribers = append(subscribers, subscribedClient(t, r.proxy, "app"))
	}
	for _, user := range []string{"app", "op", "slow", "slow"} {
		sendUnread(t, connectAs(t, r.proxy, user))
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
	kit.Eventually(t, func() error {
		if reply := kit.Do(t, kit.Connect(t, r.proxy), "AUTH", "next", "next"); reply != "OK" {
			return fmt.Errorf("AUTH after SIGHUP: %v", reply)
		}
		return nil
	})
	kit.Do(t, op, "PROXY", "RELOAD")
	kit.Want(t, op, "OK", "ACL", "LOAD")
}

// TestInvalidationsWithStalledClient checks that a client that does not read its invalidations
// delays no other client that tracks the same keys.
func TestInvalidationsWithStalledClient(t *testing.T) {
	redistest.SkipShort(t)
	r, _, op := startStalledRelay(t)
	connectTracking := func() *redistest.Client {
		client := subscribedClient(t, r.proxy, "app")
		kit.Want(t, client, "OK", "CLIENT", "TRACKING", "ON")
		kit.Want(t, client, nil, "GET", "lock:small")
		return client
	}
	stalledClient, readingClient := connectTracking(), connectTracking()
	sendUnread(t, stalledClient)
	kit.Want(t, op, "OK", "SET", "lock:small", "1")
	got, err := readingClient.Receive()
	kit.Must(t, err)
	if fmt.Sprint(got) != "[invalidate [lock:small]]" {
		t.Errorf("got %v", got)
	}
	kit.Want(t, readingClient, "PONG", "PING", "PONG")
}

// TestDrainWithStalledClients checks that, after SIGTERM, a proxy ends after its drain-timeout,
// even if clients leave replies unread.
func TestDrainWithStalledClients(t *testing.T) {
	redistest.SkipShort(t)
	r, _, _ := startStalledRelay(t, "--drain-timeout", "1s")
	for range 3 {
		sendUnread(t, subscribedClient(t, r.proxy, "app"))
	}
	kit.Must(t, r.proxy.Signal(syscall.SIGTERM))
	if code, err := r.proxy.Wait(kit.WaitLimit); err != nil || code != 0 {
		t.Errorf("exit code %d, %v", code, err)
	}
}
