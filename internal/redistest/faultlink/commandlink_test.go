package faultlink

import (
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"redlock-proxy/internal/redistest"
)

// newCommandLink returns a link to a real Redis; goleak checks that Close ends all goroutines.
func newCommandLink(t *testing.T) (*CommandLink, *redistest.Server) {
	t.Helper()
	server := redistest.New(t, redistest.Options{})
	ignore := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, ignore) })
	link, err := NewCommandLink(server.Addr())
	check(t, err)
	t.Cleanup(func() { check(t, link.Close()) })
	return link, server
}

// waitForValue waits until a key has a value on a server.
func waitForValue(t *testing.T, client *redistest.Client, key string, value any) {
	t.Helper()
	for end := time.Now().Add(waitLimit); ; time.Sleep(time.Millisecond) {
		got, err := client.Do("GET", key)
		check(t, err)
		if got == value {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("GET %s: %v; want %v", key, got, value)
		}
	}
}

func TestCommandLinkForwards(t *testing.T) {
	link, _ := newCommandLink(t)
	client := dial(t, link.Addr())
	want(t, client, "OK", "SET", "k", strings.Repeat("v", 100_000))
	want(t, client, int64(100_000), "STRLEN", "k")
	check(t, client.Send([]byte("*1\r\n$4\r\nPING\r\n*2\r\n$4\r\nECHO\r\n$2\r\n\r\n\r\n*1\r\n$4\r\nPI")))
	for _, reply := range []string{"PONG", "\r\n"} {
		if got, err := client.Receive(); err != nil || got != reply {
			t.Fatalf("%q, %v; want %q", got, err, reply)
		}
	}
	check(t, client.Send([]byte("NG\r\n")))
	check(t, client.CloseWrite())
	if rest, err := client.ReceiveAll(); string(rest) != "+PONG\r\n" || err != nil && !errors.Is(err, syscall.ECONNRESET) {
		t.Fatalf("%q, %v; want PONG and the end", rest, err)
	}
}

// TestHoldCommands checks that a held command arrives when it is released. Later commands on its
// connection wait for the held command. Commands on other connections do not wait.
func TestHoldCommands(t *testing.T) {
	link, server := newCommandLink(t)
	direct, slow, other := dial(t, server.Addr()), dial(t, link.Addr()), dial(t, link.Addr())
	hold := link.HoldCommands(Containing("k1"))
	check(t, slow.Send(redistest.AppendCommand(redistest.AppendCommand(nil, "SET", "k1", "v"), "SET", "k2", "v")))
	check(t, hold.Wait(1, waitLimit))
	want(t, other, "OK", "SET", "k3", "v")
	wantSilence(t, slow)
	want(t, direct, int64(0), "EXISTS", "k1", "k2")
	hold.Release()
	for range 2 {
		if reply, err := slow.Receive(); err != nil || reply != "OK" {
			t.Fatalf("%v, %v after Release; want OK", reply, err)
		}
	}
	want(t, slow, "OK", "SET", "k1", "w") // the rule has ended
}

// TestHoldOutlivesItsSender checks that a released command arrives although its sender has closed
// the connection, cleanly or with a reset.
func TestHoldOutlivesItsSender(t *testing.T) {
	link, server := newCommandLink(t)
	direct := dial(t, server.Addr())
	for name, disconnect := range map[string]func(*redistest.Client){
		"closed": func(c *redistest.Client) { _ = c.Close() },
		"reset":  func(c *redistest.Client) { _ = c.Reset() },
	} {
		hold := link.HoldCommands(Containing(name))
		sender := dial(t, link.Addr())
		check(t, sender.Send(redistest.AppendCommand(nil, "SET", name, "late")))
		check(t, hold.Wait(1, waitLimit))
		disconnect(sender)
		time.Sleep(quietTime) // in this time, an unheld command would arrive
		want(t, direct, nil, "GET", name)
		hold.Release()
		waitForValue(t, direct, name, "late")
	}
}

func TestHoldDiscarded(t *testing.T) {
	link, server := newCommandLink(t)
	client := dial(t, link.Addr())
	hold := link.HoldCommands(Containing("k"))
	check(t, client.Send(redistest.AppendCommand(nil, "SET", "k", "v")))
	check(t, hold.Wait(1, waitLimit))
	hold.Discard()
	hold.Release() // has no effect after Discard
	if _, err := client.Receive(); !errors.Is(err, syscall.ECONNRESET) {
		t.Fatalf("%v; want a reset", err)
	}
	want(t, dial(t, server.Addr()), nil, "GET", "k")
	want(t, dial(t, link.Addr()), "OK", "SET", "k", "w")
}

func TestHoldStopped(t *testing.T) {
	link, _ := newCommandLink(t)
	first, second := dial(t, link.Addr()), dial(t, link.Addr())
	hold := link.HoldCommands(Containing("k"))
	check(t, first.Send(redistest.AppendCommand(nil, "SET", "k", "late")))
	check(t, hold.Wait(1, waitLimit))
	hold.Stop()
	want(t, second, "OK", "SET", "k", "v")
	wantSilence(t, first)
	hold.Release()
	if reply, err := first.Receive(); err != nil || reply != "OK" {
		t.Fatalf("%v, %v after Release; want OK", reply, err)
	}
	want(t, second, "late", "GET", "k")
}

// TestHoldReplies checks that the server executes the command, but its reply arrives only after
// Release.
func TestHoldReplies(t *testing.T) {
	link, server := newCommandLink(t)
	direct, client := dial(t, server.Addr()), dial(t, link.Addr())
	hold := link.HoldReplies(Containing("k"))
	want(t, client, "PONG", "PING")
	check(t, client.Send(redistest.AppendCommand(redistest.AppendCommand(nil, "SET", "k", "v"), "PING")))
	check(t, hold.Wait(1, waitLimit))
	waitForValue(t, direct, "k", "v")
	wantSilence(t, client)
	hold.Release()
	for _, reply := range []string{"OK", "PONG"} {
		if got, err := client.Receive(); err != nil || got != reply {
			t.Fatalf("%v, %v after Release; want %s", got, err, reply)
		}
	}
}

func TestDelayCommands(t *testing.T) {
	link, _ := newCommandLink(t)
	client := dial(t, link.Addr())
	const delayTime = 20 * quietTime // longer than an undelayed command takes on a busy machine
	delay := link.DelayCommands(Containing("k"), delayTime)
	for _, late := range []bool{true, false} {
		start := time.Now()
		want(t, client, "OK", "SET", "k", "v")
		if elapsed := time.Since(start); elapsed < delayTime == late {
			t.Errorf("%v; late: %v", elapsed, late)
		}
		delay.Release()
	}
}

func TestSkipFirstAndOnlyFirst(t *testing.T) {
	after, first := SkipFirst(2, Containing("k")), OnlyFirst(2, Containing("k"))
	for i, command := range []string{"k", "x", "k", "k", "x", "k"} {
		if got, want := after([]byte(command)), command == "k" && i > 2; got != want {
			t.Errorf("SkipFirst(2), command %d %s: %v", i, command, got)
		}
		if got, want := first([]byte(command)), command == "k" && i <= 2; got != want {
			t.Errorf("OnlyFirst(2), command %d %s: %v", i, command, got)
		}
	}
}

func TestHoldWaitEnds(t *testing.T) {
	link, _ := newCommandLink(t)
	if err := link.HoldCommands(AnyCommand).Wait(1, time.Millisecond); !errors.Is(err, errNotHeld) {
		t.Errorf("%v; want %v", err, errNotHeld)
	}
}

// TestCommandLinkClosed checks that Close resets connections with held commands, and leaves no
// goroutine.
func TestCommandLinkClosed(t *testing.T) {
	link, _ := newCommandLink(t)
	client := dial(t, link.Addr())
	hold := link.HoldCommands(AnyCommand)
	check(t, client.Send(redistest.AppendCommand(nil, "PING")))
	check(t, hold.Wait(1, waitLimit))
	check(t, link.Close())
	check(t, link.Close())
	if _, err := client.Receive(); err == nil {
		t.Error("a connection outlives its link")
	}
}
