package faultlink

import (
	"testing"
	"time"

	"redlock-proxy/internal/redistest"
)

// TestRetarget checks that an old connection still reaches the old server while a new
// connection reaches the new server.
func TestRetarget(t *testing.T) {
	before, after := redistest.New(t, redistest.Options{}), redistest.New(t, redistest.Options{})
	want(t, dial(t, before.Addr()), "OK", "SET", "name", "before")
	want(t, dial(t, after.Addr()), "OK", "SET", "name", "after")
	link, err := New(before.Addr())
	check(t, err)
	defer func() { check(t, link.Close()) }()

	old := dial(t, link.Addr())
	want(t, old, "before", "GET", "name")
	link.Retarget(after.Addr())
	want(t, dial(t, link.Addr()), "after", "GET", "name")
	want(t, old, "before", "GET", "name")
	if n := link.AcceptedCount(); n != 2 {
		t.Errorf("%d connections; want 2", n)
	}
}

func TestLinkDelay(t *testing.T) {
	link := newLink(t)
	client := dial(t, link.Addr())
	link.Delay(quietTime)
	start := time.Now()
	wantEcho(t, client, "late")
	if elapsed := time.Since(start); elapsed < quietTime {
		t.Errorf("the answer took %v; want %v and more", elapsed, quietTime)
	}
	link.Delay(0)
	wantEcho(t, client, "at once")
}
