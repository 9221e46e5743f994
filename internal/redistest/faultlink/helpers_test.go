package faultlink

import (
	"errors"
	"os"
	"testing"
	"time"

	"redlock-proxy/internal/redistest"
)

// waitLimit limits the wait of a test for an expected event; quietTime is the time for which a test
// checks that an event does not happen.
const (
	waitLimit = time.Minute
	quietTime = 50 * time.Millisecond
)

func dial(t *testing.T, addr string) *redistest.Client {
	t.Helper()
	client, err := redistest.Dial(addr, waitLimit)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func want(t *testing.T, client *redistest.Client, reply any, command ...string) {
	t.Helper()
	got, err := client.Do(command...)
	if err != nil || got != reply {
		t.Fatalf("%v: %#v, %v; want %#v", command, got, err, reply)
	}
}

func wantSilence(t *testing.T, client *redistest.Client) {
	t.Helper()
	client.SetTimeout(quietTime)
	defer client.SetTimeout(waitLimit)
	if reply, err := client.Receive(); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("got %#v, %v; want silence", reply, err)
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
