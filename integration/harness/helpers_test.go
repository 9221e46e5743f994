package harness

import (
	"testing"
	"time"

	"redlock-proxy/internal/redistest"
)

// waitLimit limits the wait of a test for a condition. quietTime is the time for which a test
// checks that something does not happen.
const (
	waitLimit = time.Minute
	quietTime = 50 * time.Millisecond
)

// longTimeoutArgs returns the arguments for a master-timeout that a master meets even on a busy
// machine.
func longTimeoutArgs() []string { return []string{"--master-timeout", "5s"} }

func dial(t *testing.T, addr string) *redistest.Client {
	t.Helper()
	client, err := redistest.Dial(addr, waitLimit)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func wantReply(t *testing.T, client *redistest.Client, reply any, command ...string) {
	t.Helper()
	got, err := client.Do(command...)
	if err != nil || got != reply {
		t.Fatalf("%v: %#v, %v; want %#v", command, got, err, reply)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
