//go:build integration

package tracking

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// TestBetweenReplies: while a client reads long replies of the upstream and short ones of the
// proxy, and another changes lock keys, each reply comes whole and in its place, and invalidations
// between them. The last change is always told.
func TestBetweenReplies(t *testing.T) {
	const long, rounds = 1 << 20, 150
	f := start(t, true)
	client, other := tracks(t, f.Proxies[0]), kit.Connect(t, f.Proxies[1])
	kit.Want(t, other, "OK", "SET", "long", strings.Repeat("x", long))
	ended := make(chan error, 1)
	go func() {
		for i := range rounds {
			if _, err := other.Do("SET", "lock:k", fmt.Sprint(i), "PX", "100000"); err != nil {
				ended <- err
				return
			}
		}
		ended <- nil
	}()
	told, known := 0, ""
	// next is the next reply. An invalidation before it has what is known be forgotten.
	next := func() any {
		for {
			got, err := client.Receive()
			kit.Must(t, err)
			if _, push := got.(redistest.Push); !push {
				return got
			}
			if fmt.Sprint(got) != fmt.Sprint(redistest.Push{"invalidate", []any{"lock:k"}}) {
				t.Fatalf("told %v", got)
			}
			told++
			known = ""
		}
	}
	pipeline := redistest.AppendCommand(nil, "GET", "long")
	pipeline = redistest.AppendCommand(pipeline, "GET", "lock:k")
	pipeline = redistest.AppendCommand(pipeline, "GET", "long")
	read := func() {
		kit.Must(t, client.Send(pipeline))
		for i := range 3 {
			switch text := fmt.Sprint(next()); {
			case i == 1:
				known = text
			case len(text) != long:
				t.Fatalf("a reply of %d bytes: %.40q", len(text), text)
			}
		}
	}
	for done := false; !done; {
		read()
		select {
		case err := <-ended:
			kit.Must(t, err)
			done = true
		default:
		}
	}
	for last := fmt.Sprint(rounds - 1); known != last; {
		if known != "" { // it is told that this is not so any more
			got, err := client.Receive()
			kit.Must(t, err)
			if _, push := got.(redistest.Push); !push {
				t.Fatalf("%v", got)
			}
			told++
		}
		read()
	}
	t.Logf("told %d times of %d changes", told, rounds)
}

// TestRESP2: a client that speaks RESP2 is told nothing, since there is no message for that.
func TestRESP2(t *testing.T) {
	each(t, func(t *testing.T, f *kit.Fleet) {
		client, other := kit.Connect(t, f.Proxies[0]), kit.Connect(t, f.Proxies[1])
		kit.Want(t, client, "OK", "CLIENT", "TRACKING", "ON")
		kit.Want(t, client, nil, "GET", "lock:k")
		kit.Want(t, other, "OK", "SET", "lock:k", "token", "PX", "100000")
		wantSilence(t, client)
	})
}

// TestParked: a client that says nothing for long is told all the same.
func TestParked(t *testing.T) {
	redistest.SkipShort(t)
	each(t, func(t *testing.T, f *kit.Fleet) {
		client, other := tracks(t, f.Proxies[0]), kit.Connect(t, f.Proxies[1])
		kit.Want(t, client, nil, "GET", "lock:k")
		time.Sleep(3 * time.Second) // longer than a client is quiet before it is parked
		kit.Want(t, other, "OK", "SET", "lock:k", "token", "PX", "100000")
		wantInvalidation(t, client, "lock:k")
		kit.Want(t, client, "token", "GET", "lock:k")
	})
}
