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

// TestBetweenReplies: a client reads long replies of the upstream and short ones of the proxy,
// while another client changes lock keys. Each reply arrives complete and in order, with
// invalidations between replies. The last change is always reported.
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
	// next returns the next reply. Each invalidation before it clears known.
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
		if known != "" { // an invalidation of the outdated value must arrive
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

// TestRESP2: a RESP2 client gets no invalidations, because RESP2 has no message for them.
func TestRESP2(t *testing.T) {
	each(t, func(t *testing.T, f *kit.Fleet) {
		client, other := kit.Connect(t, f.Proxies[0]), kit.Connect(t, f.Proxies[1])
		kit.Want(t, client, "OK", "CLIENT", "TRACKING", "ON")
		kit.Want(t, client, nil, "GET", "lock:k")
		kit.Want(t, other, "OK", "SET", "lock:k", "token", "PX", "100000")
		wantSilence(t, client)
	})
}

// TestParked: a client that is parked, because it was silent, still gets invalidations.
func TestParked(t *testing.T) {
	redistest.SkipShort(t)
	each(t, func(t *testing.T, f *kit.Fleet) {
		client, other := tracks(t, f.Proxies[0]), kit.Connect(t, f.Proxies[1])
		kit.Want(t, client, nil, "GET", "lock:k")
		time.Sleep(3 * time.Second) // the time until the client is parked
		kit.Want(t, other, "OK", "SET", "lock:k", "token", "PX", "100000")
		wantInvalidation(t, client, "lock:k")
		kit.Want(t, client, "token", "GET", "lock:k")
	})
}
