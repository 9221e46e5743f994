package upstream

import (
	"context"
	"errors"
	"log/slog"
	"reflect"
	"testing"
	"time"

	"redlock-proxy/internal/redistest"
	"redlock-proxy/internal/resp"
)

// TestSingle checks that all commands go over one connection, and that no command is sent after the
// connection is lost.
func TestSingle(t *testing.T) {
	server := redistest.New(t, redistest.Options{ExtraArgs: []string{"--requirepass", "secret"}})
	u, err := New("redis://:secret@"+server.Addr()+"/3", 0, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	s, err := u.OpenConn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	got, err := s.Ask(t.Context(), []string{"RPUSH", "k", "a", "\x00\r\n"}, []string{"LRANGE", "k", "0", "-1"},
		[]string{"GET", "k"}, []string{"GET", "none"}, []string{"INFO"})
	if err != nil || len(got) != 5 {
		t.Fatal(got, err)
	}
	if want := []any{int64(2), []any{"a", "\x00\r\n"},
		resp.Error("WRONGTYPE Operation against a key holding the wrong kind of value"),
		nil}; !reflect.DeepEqual(got[:4], want) {
		t.Errorf("%q", got[:4])
	}
	id, _ := s.Ask(t.Context(), []string{"CLIENT", "ID"})
	if other, err := s.Ask(t.Context(), []string{"CLIENT", "ID"}); err != nil || !reflect.DeepEqual(id, other) {
		t.Errorf("%v, then %v: %v", id, other, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := s.Ask(ctx, []string{"BLPOP", "none", "0"}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	if _, err := s.Ask(t.Context(), []string{"PING"}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("it continues: %v", err)
	}
}
