//go:build integration

package tracking

import (
	"testing"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// TestChanges checks that a client that has read a lock key gets one invalidation for a change by
// any client.
func TestChanges(t *testing.T) {
	runInBothModes(t, func(t *testing.T, f *kit.Fleet) {
		otherClient, untracking := kit.Connect(t, f.Proxies[1]), kit.Connect(t, f.Proxies[0])
		kit.Do(t, untracking, "HELLO", "3")
		client := connectTracking(t, f.Proxies[0])
		for name, change := range map[string]func(){
			"a DEL by the other proxy": func() { kit.Want(t, otherClient, int64(1), "DEL", "lock:k") },
			"a SET by the other proxy": func() { kit.Want(t, otherClient, "OK", "SET", "lock:k", "of another", "PX", "100000") },
			"a shorter end":            func() { kit.Want(t, otherClient, int64(1), "PEXPIRE", "lock:k", "50000") },
			"an end":                   func() { kit.Want(t, otherClient, int64(1), "PEXPIRE", "lock:k", "300") },
			"a DEL on the masters": func() {
				for _, master := range f.Masters {
					kit.Must(t, kit.SendToMaster(master, "DEL", "lock:k"))
				}
			},
			"a FLUSHALL on the masters": func() {
				for _, master := range f.Masters {
					kit.Must(t, kit.SendToMaster(master, "FLUSHALL"))
				}
			},
			"a DEL by another client of the same proxy": func() { kit.Want(t, untracking, int64(1), "DEL", "lock:k") },
			"a DEL of its own": func() {
				kit.Must(t, client.Send(redistest.AppendCommand(nil, "DEL", "lock:k")))
				got, err := client.Receive()
				kit.Must(t, err)
				if got != int64(1) {
					t.Fatalf("DEL: %v", got)
				}
			},
		} {
			t.Run(name, func(t *testing.T) {
				kit.Want(t, otherClient, "OK", "SET", "lock:k", "token", "PX", "100000")
				kit.Want(t, client, "token", "GET", "lock:k")
				kit.Want(t, untracking, "token", "GET", "lock:k")
				wantSilence(t, client)
				change()
				wantInvalidation(t, client, "lock:k")
				kit.Want(t, otherClient, "OK", "SET", "lock:k", "again", "PX", "100000")
				wantSilence(t, client)     // there is only one invalidation
				wantSilence(t, untracking) // this client does not track
			})
		}
	})
}

// TestAbsentKey checks that a read of an absent key is tracked, too.
func TestAbsentKey(t *testing.T) {
	runInBothModes(t, func(t *testing.T, f *kit.Fleet) {
		client, otherClient := connectTracking(t, f.Proxies[0]), kit.Connect(t, f.Proxies[1])
		kit.Want(t, client, nil, "GET", "lock:absent")
		wantSilence(t, client)
		kit.WantGrant(t, otherClient, "LOCK", "lock:absent", "token", "PX", "100000")
		wantInvalidation(t, client, "lock:absent")
	})
}

// TestModes checks that OPTIN, OPTOUT and OFF select the tracked reads as in Redis.
func TestModes(t *testing.T) {
	runInBothModes(t, func(t *testing.T, f *kit.Fleet) {
		otherClient := kit.Connect(t, f.Proxies[1])
		setBoth := func(value string) { kit.Want(t, otherClient, "OK", "MSET", "lock:a", value, "lock:b", value) }
		deleteBoth := func() { kit.Want(t, otherClient, int64(2), "DEL", "lock:a", "lock:b") }
		client := connectTracking(t, f.Proxies[0], "OPTIN")
		setBoth("1")
		kit.Want(t, client, "OK", "CLIENT", "CACHING", "YES")
		kit.Want(t, client, "1", "GET", "lock:a")
		kit.Want(t, client, "1", "GET", "lock:b")
		wantSilence(t, client)
		deleteBoth()
		wantInvalidation(t, client, "lock:a")
		wantSilence(t, client)

		setBoth("2")
		kit.Want(t, client, "OK", "CLIENT", "CACHING", "YES") // rueidis reads in this way
		kit.Want(t, client, "OK", "MULTI")
		kit.Want(t, client, "QUEUED", "PTTL", "lock:a")
		kit.Want(t, client, "QUEUED", "GET", "lock:a")
		kit.Do(t, client, "EXEC")
		wantSilence(t, client)
		deleteBoth()
		wantInvalidation(t, client, "lock:a")

		setBoth("3")
		kit.Want(t, client, "OK", "CLIENT", "TRACKING", "OFF")
		kit.Want(t, client, "3", "GET", "lock:a")
		deleteBoth()
		wantSilence(t, client)

		setBoth("4")
		kit.Want(t, client, "OK", "CLIENT", "TRACKING", "ON", "OPTOUT", "NOLOOP")
		kit.Want(t, client, "OK", "CLIENT", "CACHING", "NO")
		kit.Want(t, client, "4", "GET", "lock:a")
		kit.Want(t, client, "4", "GET", "lock:b")
		deleteBoth()
		wantInvalidation(t, client, "lock:b")
		wantSilence(t, client)

		setBoth("5")
		kit.Want(t, client, "5", "GET", "lock:a")
		wantSilence(t, client)
		kit.Want(t, client, int64(1), "DEL", "lock:a") // the client's own change, with NOLOOP
		wantSilence(t, client)
	})
}

// TestUnwatchedMasters checks that no client gets a needless invalidation as long as the proxy can
// watch a majority of the masters. Without a majority, all clients get invalidations. The test
// stops masters only when the proxy watches all of them, because before that the remaining masters
// may be unwatched.
func TestUnwatchedMasters(t *testing.T) {
	f := start(t, true)
	client, observer, otherClient := connectTracking(t, f.Proxies[0]), kit.Connect(t, f.Proxies[0]), kit.Connect(t, f.Proxies[1])
	kit.Want(t, otherClient, "OK", "SET", "lock:k", "token", "PX", "100000")
	kit.Want(t, client, "token", "GET", "lock:k")
	kit.Eventually(t, func() error { return checkWatched(t, observer, len(f.Masters)) })
	wantSilence(t, client)
	for _, master := range f.Masters[:2] {
		kit.Must(t, master.Kill())
	}
	wantSilence(t, client)
	kit.Must(t, f.Masters[2].Kill())
	wantInvalidation(t, client, "lock:k")
}

// TestOptOutAtTheUpstream sends a CLIENT CACHING NO before a read of a lock key. The command does
// not apply to the next read, of a key of the upstream.
func TestOptOutAtTheUpstream(t *testing.T) {
	f := start(t, true)
	client, otherClient := connectTracking(t, f.Proxies[0], "OPTOUT"), kit.Connect(t, f.Proxies[1])
	kit.Want(t, client, "OK", "CLIENT", "CACHING", "NO")
	kit.Want(t, client, nil, "GET", "lock:k")
	kit.Want(t, client, nil, "GET", "key")
	kit.Want(t, otherClient, "OK", "SET", "lock:k", "token", "PX", "100000")
	kit.Want(t, otherClient, "OK", "SET", "key", "value")
	wantInvalidation(t, client, "key")
	wantSilence(t, client)
}
