//go:build integration

package masters

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// TestSubscribersAndAChange checks that subscribers lose their connection when the masters are
// changed, at the proxy that changes them and at the other proxy. Then both proxies send and
// receive messages only through the new masters.
func TestSubscribersAndAChange(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	r := startRig(t, 2, 3, 5)
	var publishers []*redistest.Client
	for _, proxy := range r.proxies {
		publishers = append(publishers, kit.Connect(t, proxy))
	}
	for step, masters := range [][]int{{0, 1, 2, 3}, {0, 1, 4, 3}, {1, 4, 3}} {
		var subscribers []*redistest.Client
		for _, proxy := range r.proxies {
			client := kit.Connect(t, proxy)
			kit.WantPrefix(t, client, "SUBSCRIBE c", "[subscribe c 1]")
			subscribers = append(subscribers, client)
		}
		for i, publisher := range publishers {
			// The receivers are the subscribers of both proxies.
			kit.Want(t, publisher, int64(2), "PUBLISH", "c", fmt.Sprint(step, i))
			for _, client := range subscribers {
				got, err := client.Receive()
				kit.Must(t, err)
				if want := []any{"message", "c", fmt.Sprint(step, i)}; fmt.Sprint(got) != fmt.Sprint(want) {
					t.Fatalf("%v, want %v", got, want)
				}
			}
		}
		r.change(masters...)
		for _, client := range subscribers {
			if got, err := client.Receive(); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
				t.Fatalf("%v, %v", got, err)
			}
		}
	}
}
