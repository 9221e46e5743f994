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

// TestInvalidationsBetweenReplies reads long replies of the upstream and short replies of the proxy
// while another client changes lock keys. Each reply arrives complete and in order, with
// invalidations between replies. The last change is always reported.
func TestInvalidationsBetweenReplies(t *testing.T) {
	const length, rounds = 1 << 20, 150
	f := start(t, true)
	client, otherClient := connectTracking(t, f.Proxies[0]), kit.Connect(t, f.Proxies[1])
	kit.Want(t, otherClient, "OK", "SET", "long", strings.Repeat("x", length))
	writerDone := make(chan error, 1)
	go func() {
		for i := range rounds {
			if _, err := otherClient.Do("SET", "lock:k", fmt.Sprint(i), "PX", "100000"); err != nil {
				writerDone <- err
				return
			}
		}
		writerDone <- nil
	}()
	invalidations, cached := 0, ""
	// nextReply returns the next reply. Each invalidation before it clears cached.
	nextReply := func() any {
		for {
			got, err := client.Receive()
			kit.Must(t, err)
			if _, isPush := got.(redistest.Push); !isPush {
				return got
			}
			if fmt.Sprint(got) != fmt.Sprint(redistest.Push{"invalidate", []any{"lock:k"}}) {
				t.Fatalf("told %v", got)
			}
			invalidations++
			cached = ""
		}
	}
	pipeline := redistest.AppendCommand(nil, "GET", "long")
	pipeline = redistest.AppendCommand(pipeline, "GET", "lock:k")
	pipeline = redistest.AppendCommand(pipeline, "GET", "long")
	readPipeline := func() {
		kit.Must(t, client.Send(pipeline))
		for i := range 3 {
			switch text := fmt.Sprint(nextReply()); {
			case i == 1:
				cached = text
			case len(text) != length:
				t.Fatalf("a reply of %d bytes: %.40q", len(text), text)
			}
		}
	}
	for done := false; !done; {
		readPipeline()
		select {
		case err := <-writerDone:
			kit.Must(t, err)
			done = true
		default:
		}
	}
	for last := fmt.Sprint(rounds - 1); cached != last; {
		if cached != "" { // an invalidation of the outdated value must arrive
			got, err := client.Receive()
			kit.Must(t, err)
			if _, isPush := got.(redistest.Push); !isPush {
				t.Fatalf("%v", got)
			}
			invalidations++
		}
		readPipeline()
	}
	t.Logf("told %d times of %d changes", invalidations, rounds)
}

// TestRESP2 checks that a RESP2 client gets no invalidations, because RESP2 has no message for
// them.
func TestRESP2(t *testing.T) {
	runInBothModes(t, func(t *testing.T, f *kit.Fleet) {
		client, otherClient := kit.Connect(t, f.Proxies[0]), kit.Connect(t, f.Proxies[1])
		kit.Want(t, client, "OK", "CLIENT", "TRACKING", "ON")
		kit.Want(t, client, nil, "GET", "lock:k")
		kit.Want(t, otherClient, "OK", "SET", "lock:k", "token", "PX", "100000")
		wantSilence(t, client)
	})
}

// TestParkedClient checks that a client that the proxy has parked, because it was silent, still
// gets invalidations.
func TestParkedClient(t *testing.T) {
	redistest.SkipShort(t)
	runInBothModes(t, func(t *testing.T, f *kit.Fleet) {
		client, otherClient := connectTracking(t, f.Proxies[0]), kit.Connect(t, f.Proxies[1])
		kit.Want(t, client, nil, "GET", "lock:k")
		time.Sleep(3 * time.Second) // the time until the client is parked
		kit.Want(t, otherClient, "OK", "SET", "lock:k", "token", "PX", "100000")
		wantInvalidation(t, client, "lock:k")
		kit.Want(t, client, "token", "GET", "lock:k")
	})
}
