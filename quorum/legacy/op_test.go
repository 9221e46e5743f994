package legacy

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"redlock-proxy/quorum/cell"
	"redlock-proxy/quorum/master"
	"redlock-proxy/quorum/register"
)

const token, rival = "me", "you"

// running is a Server over a Redis in memory.
func running(t *testing.T) *Server {
	t.Helper()
	conn, err := master.NewTransport("redis://"+miniredis.RunT(t).Addr(), time.Second, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{master.New("legacy", conn, slog.New(slog.DiscardHandler), func() float64 { return 0.5 })}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); s.Run(ctx) }()
	t.Cleanup(func() { stop(); <-done })
	for s.IsDown() {
		time.Sleep(time.Millisecond)
	}
	return s
}

// TestOps: at a server the operations do what they do on a Store.
func TestOps(t *testing.T) {
	s, store := running(t), &cell.Store{}
	there := cell.Found{Cell: foreign(token), Left: time.Minute}
	endless := cell.Found{Cell: foreign("x"), Left: cell.Endless}
	for _, step := range []cell.Op{
		read{"k"},
		remove{"k", token},
		extend{"k", token, time.Minute},
		take{"k", token, time.Minute},
		take{"k", rival, time.Minute},
		read{"k"},
		extend{"k", rival, time.Hour},
		extend{"k", token, time.Second},
		read{"k"},
		extend{"k", token, time.Hour},
		read{"k"},
		extend{"k", token, cell.Endless},
		read{"k"},
		remove{"k", rival},
		remove{"k", token},
		take{"k", "x", cell.Endless},
		read{"k"},
		swap{"k", there, register.Decision{Do: register.Put, Value: "y", TTL: time.Minute}},
		swap{"k", cell.Found{}, register.Decision{Do: register.Put, Value: "y", TTL: time.Minute}},
		swap{"k", endless, register.Decision{Do: register.Put, Value: "y", TTL: time.Minute}},
		read{"k"},
		swap{"k", cell.Found{Cell: foreign("y")}, register.Decision{Do: register.Put, Value: "", KeepTTL: true}},
		read{"k"},
		swap{"k", cell.Found{Cell: foreign("")}, register.Decision{Do: register.Put, Value: "z", TTL: cell.Endless}},
		read{"k"},
		swap{"k", cell.Found{Cell: foreign("z")}, register.Decision{Do: register.Remove}},
		swap{"k", cell.Found{}, register.Decision{Do: register.Put, Value: "z", KeepTTL: true}},
		read{"k"},
		undo{"k", "z", time.Minute}, // it has no end
		undo{"k", "y", cell.Endless},
		undo{"k", "z", cell.Endless},
		read{"k"},
		take{"k", token, time.Minute},
		undo{"k", token, 30 * time.Second}, // it has more
		undo{"k", token, cell.Endless},
		read{"k"},
		undo{"k", token, time.Minute},
		undo{"k", token, time.Minute},
		read{"k"},
	} {
		store.Now = time.Duration(time.Now().UnixNano())
		got, err := s.ask(t.Context(), 0, step, nil)
		want := step.Apply(store)
		for _, answer := range []cell.Answer{got, want} {
			for i, f := range answer.Found {
				if f.Left > 0 {
					answer.Found[i].Left = f.Left.Round(time.Second)
				}
			}
		}
		if err != nil || fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
			t.Errorf("%T%+v: %+v, %v, want %+v", step, step, got, err, want)
		}
	}
}

// TestBeside: what the legacy server holds counts.
func TestBeside(t *testing.T) {
	masters := register.Look{Present: true, Value: "me", Left: time.Minute, Version: "v"}
	unknown := register.Look{Present: true, Value: "me", Unknown: true, Version: "v"}
	there := func(value string) cell.Found { return cell.Found{Cell: foreign(value), Left: time.Second} }
	for _, test := range []struct {
		masters register.Look
		legacy  cell.Found
		want    register.Look
	}{
		{register.Look{}, cell.Found{}, register.Look{}},
		{masters, cell.Found{}, masters},
		{masters, there("me"), masters},
		{unknown, there("me"), register.Look{Present: true, Value: "me", Left: time.Second, Version: "v"}},
		{masters, there("old"), register.Look{Present: true, Value: "old", Left: time.Second, Version: "legacy old"}},
		{register.Look{}, there("old"), register.Look{Present: true, Value: "old", Left: time.Second, Version: "legacy old"}},
	} {
		if got := Beside(test.masters, test.legacy); got != test.want {
			t.Errorf("%+v beside %+v: %+v, want %+v", test.masters, test.legacy, got, test.want)
		}
	}
}

// TestUndoSparesOthers: the undo spares an old client's lock with the same value that has more time
// left than the attempt can have.
func TestUndoSparesOthers(t *testing.T) {
	for _, test := range []struct {
		left, ttl time.Duration
		passed    time.Duration
		spared    bool
	}{
		{10 * time.Second, 10 * time.Second, 0, false},
		{10 * time.Second, 10 * time.Second, time.Second, true},
		{11 * time.Second, 10 * time.Second, 0, true},
		{cell.Endless, 10 * time.Second, 0, true},
		{cell.Endless, cell.Endless, time.Hour, false},
		{time.Second, cell.Endless, 0, true},
		{time.Second, 10 * time.Second, time.Minute, true}, // it is over
	} {
		store := &cell.Store{}
		store.Put("k", foreign("1"), test.left)
		if u, ok := undoAfter(test.passed, "k", "1", test.ttl); ok {
			u.Apply(store)
		}
		if spared := store.Look("k").Form != cell.Absent; spared != test.spared {
			t.Errorf("%+v: spared %v", test, spared)
		}
	}
}
