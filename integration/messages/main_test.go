//go:build integration

package messages

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"redlock-proxy/integration/harness"
	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

func TestMain(m *testing.M) { kit.Main(m) }

// start starts five masters and the given number of lock servers, with the lock keys lock:*.
func start(t *testing.T, proxies int) *kit.Fleet {
	t.Helper()
	f := &kit.Fleet{Masters: kit.StartMasters(t)}
	for range proxies {
		args := []string{"--lock-keys", "lock:*", "--guard=false"}
		f.Proxies = append(f.Proxies, kit.StartProxy(t, redistest.URLs(f.Masters), args...))
	}
	return f
}

// connectSubscriber connects a client that is subscribed to channels.
func connectSubscriber(t *testing.T, proxy *harness.Proxy, channels ...string) *redistest.Client {
	t.Helper()
	client := kit.Connect(t, proxy)
	for i, channel := range channels {
		wantNext(t, client, []any{"subscribe", channel, int64(i + 1)}, "SUBSCRIBE", channel)
	}
	return client
}

// wantNext sends the command, if any, and fails the test unless the next reply or push is want.
func wantNext(t *testing.T, client *redistest.Client, want any, command ...string) {
	t.Helper()
	if len(command) > 0 {
		kit.Must(t, client.Send(redistest.AppendCommand(nil, command...)))
	}
	got, err := client.Receive()
	kit.Must(t, err)
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("%v: %v, want %v", command, got, want)
	}
}

// wantNoMessage fails the test if a RESP2 subscriber gets a further message.
func wantNoMessage(t *testing.T, client *redistest.Client) {
	t.Helper()
	wantNext(t, client, []any{"pong", "end"}, "PING", "end")
}

// wantEnd fails the test unless a client's connection ends without a further message.
func wantEnd(t *testing.T, client *redistest.Client) {
	t.Helper()
	got, err := client.Receive()
	if err == nil {
		t.Fatalf("%v", got)
	}
	kit.Must(t, checkConnectionEnded(err))
}

// checkConnectionEnded returns nil for an error that means that the connection has ended.
func checkConnectionEnded(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("the connection does not end: %w", err)
	}
	return nil
}
