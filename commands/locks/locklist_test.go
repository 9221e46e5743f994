package locks

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/command"
	"redlock-proxy/commands/locks/keepalive"
	"redlock-proxy/commands/rights"
	"redlock-proxy/quorum"
)

// fakeLocks has pages of names. Every lock is held unless its name contains a different state.
type fakeLocks struct {
	pages [][]string
	// hangs is set if the masters do not answer.
	hangs    bool
	keysRead int // the number of keys that Holdings has read
}

func (f *fakeLocks) Names(ctx context.Context, _ int, page func([]string) (bool, error)) error {
	if f.hangs {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	for _, names := range f.pages {
		if more, err := page(names); err != nil || !more {
			return err
		}
	}
	return nil
}

func (f *fakeLocks) Holdings(_ context.Context, keys []quorum.Key) ([]quorum.Holding, error) {
	f.keysRead += len(keys)
	if len(keys) > readBatch {
		return nil, errors.New("too many at once")
	}
	holdings := make([]quorum.Holding, len(keys))
	for i, key := range keys {
		holdings[i] = quorum.Holding{Status: quorum.StatusHeld, TimeLeft: time.Second}
		for word, status := range map[string]quorum.Status{"free": quorum.StatusFree, "split": quorum.StatusSplit,
			"open": quorum.StatusUnclear} {
			if strings.Contains(key.Name, word) {
				holdings[i].Status = status
			}
		}
	}
	return holdings, nil
}

func (*fakeLocks) Remove(context.Context, quorum.Key) (bool, error) { return true, nil }

// upstream refuses every command except GET, and GET on keys whose names contain "secret".
type upstream struct{ rights.Upstream }

func (upstream) Refusals(_ context.Context, checks [][]string) ([]string, error) {
	texts := make([]string, len(checks))
	for i, check := range checks {
		if check[0] != "get" || strings.Contains(check[1], "secret") {
			texts[i] = "NOPERM"
		}
	}
	return texts, nil
}

// runCommand runs a command, and returns its reply and the log.
func runCommand(t *testing.T, h *OperatorCommands, log *bytes.Buffer, client *command.Client, words ...string) (reply, logText string) {
	t.Helper()
	var out command.Reply
	for _, cmd := range h.Commands() {
		if cmd.Name == words[0] {
			cmd.Run(command.Call{Ctx: t.Context(), Client: client, Args: syntax.Bytes(words), Out: &out})
		}
	}
	return string(out.Bytes), log.String()
}

func newTestCommands(locks OperatorLocks, prefix string) (*OperatorCommands, *bytes.Buffer) {
	var log bytes.Buffer
	keyOnMasters := func(db int, key string) quorum.Key { return quorum.Key{DB: db, Name: prefix + key} }
	return NewOperatorCommands(OperatorOptions{Locks: locks, KeyOnMasters: keyOnMasters, Prefix: prefix,
		Keeper: keepalive.New(nil, nil), Logger: slog.New(slog.NewTextHandler(&log, nil))}), &log
}

func newClient() *command.Client {
	return &command.Client{Addr: &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 77}, Name: "ann", User: "operator",
		Proto: 2}
}

// keysIn returns the keys in the reply to a LOCKLIST.
func keysIn(reply string) (keys []string) {
	parts := strings.Split(reply, "\r\n")
	for i, part := range parts {
		if part == "key" {
			keys = append(keys, parts[i+2])
		}
	}
	return keys
}

func TestList(t *testing.T) {
	many := make([]string, 400)
	for i := range many {
		many[i] = fmt.Sprintf("p:many:%03d", i)
	}
	locks := &fakeLocks{pages: [][]string{
		{"p:b", "p:a", "p:a", "other", "p:", "p:free", "p:split", "p:open"}, {"p:a", "p:secret", "p:c"}, many,
		{"p:never"},
	}}
	unrestricted := newClient()
	restricted := newClient()
	restricted.Upstream = upstream{}
	for _, test := range []struct {
		client    *command.Client
		words     string
		want      []string
		readCount int
	}{
		{unrestricted, "locklist match ?", []string{"a", "b", "c"}, 3},
		// The second page repeats a.
		{unrestricted, "locklist match [a-ps]* count 5", []string{"a", "b", "open", "c", "secret"}, 7},
		{unrestricted, "locklist match [a-ps]* count 6", []string{"a", "b", "open", "c", "secret", "many:000"}, 7 + readBatch},
		{restricted, "locklist match s*", nil, 1},
		{unrestricted, "locklist match secret", []string{"secret"}, 1},
		{unrestricted, "locklist match other", nil, 0},
		{unrestricted, "locklist match p:*", nil, 0},
	} {
		h, log := newTestCommands(locks, "p:")
		locks.keysRead = 0
		reply, logged := runCommand(t, h, log, test.client, strings.Fields(test.words)...)
		if got := keysIn(reply); !slices.Equal(got, test.want) || locks.keysRead != test.readCount {
			t.Errorf("%s: %q by %d reads, want %q by %d", test.words, got, locks.keysRead, test.want, test.readCount)
		}
		want := fmt.Sprintf("level=INFO msg=LOCKLIST locks=%d client.addr=10.0.0.1:77 client.name=ann client.user=operator\n", len(test.want))
		if !strings.HasSuffix(logged, want) {
			t.Errorf("%s: logged %q, want %q", test.words, logged, want)
		}
	}
}

// TestListTimeout checks that the time limit of a LOCKLIST includes its wait for a turn.
func TestListTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locks := &fakeLocks{hangs: true}
		h, _ := newTestCommands(locks, "")
		start := time.Now()
		replies := make(chan string)
		for range 2 {
			go func() {
				var out command.Reply
				h.list(command.Call{Ctx: t.Context(), Client: newClient(), Args: syntax.Bytes([]string{"locklist"}),
					Out: &out})
				replies <- string(out.Bytes)
			}()
		}
		for range 2 {
			if got := <-replies; got != "-ERR cannot list the locks: it took longer than 10s; use MATCH or a smaller COUNT\r\n" {
				t.Errorf("got %q", got)
			}
		}
		if elapsed := time.Since(start); elapsed != listTimeout {
			t.Errorf("after %v", elapsed)
		}
		locks.hangs = false // the turn is free again
		var out command.Reply
		h.list(command.Call{Ctx: t.Context(), Client: newClient(), Args: syntax.Bytes([]string{"locklist"}), Out: &out})
		if got := string(out.Bytes); got != "*0\r\n" {
			t.Errorf("got %q", got)
		}
	})
}

// TestWriteLock checks the fields in both protocols; unknown values are null.
func TestWriteLock(t *testing.T) {
	client := newClient()
	h, _ := newTestCommands(&fakeLocks{}, "")
	slots := quorum.Holding{Status: quorum.StatusHeld, TimeLeft: 9 * time.Second, Slots: 4, Holders: []quorum.LockHolder{
		{Token: "a", TimeLeft: quorum.NoExpiry}, {Token: "b", TimeLeft: 9 * time.Second, Client: client.Identity(), LeaseStart: time.UnixMilli(5)},
	}}
	shared := slots
	shared.Slots = quorum.Unlimited
	shared.Holders = nil
	held := quorum.Holding{
		Status: quorum.StatusHeld, TimeLeft: quorum.NoExpiry, Masters: []quorum.MasterAnswer{{Server: "m:1", State: "held"}},
		Holder: client.Identity(), LeaseStart: time.UnixMilli(5), Fence: 77, Waiters: 2,
	}
	for _, test := range []struct {
		proto int
		key   string
		h     quorum.Holding
		want  string
	}{
		{2, "k", held, "*20 $3 key $1 k $5 state $4 held $4 left :-1 $5 votes *2 $3 m:1 $4 held $7 waiters :2 $5 fence :77 $5 since :5 $4 addr $11 10.0.0.1:77 $4 name $3 ann $4 kept :0 "},
		{3, "", held, "%9 $5 state $4 held $4 left :-1 $5 votes %1 $3 m:1 $4 held $7 waiters :2 $5 fence :77 $5 since :5 $4 addr $11 10.0.0.1:77 $4 name $3 ann $4 kept :1 "},
		{3, "k", slots, "%12 $3 key $1 k $5 state $4 held $4 left :9000 $5 votes %0 $7 waiters :0 $5 fence _ $5 since _ $4 addr _ " +
			"$4 name _ $4 kept :0 $5 slots :4 $7 holders *2 %5 $4 left :-1 $5 since _ $4 addr _ $4 name _ $4 kept :0 " +
			"%5 $4 left :9000 $5 since :5 $4 addr $11 10.0.0.1:77 $4 name $3 ann $4 kept :0 "},
		{3, "k", shared, "%12 $3 key $1 k $5 state $4 held $4 left :9000 $5 votes %0 $7 waiters :0 $5 fence _ $5 since _ $4 addr _ " +
			"$4 name _ $4 kept :0 $5 slots _ $7 holders *0 "},
		{2, "", quorum.Holding{}, "*18 $5 state $7 unclear $4 left $-1 $5 votes *0 $7 waiters :0 $5 fence $-1 $5 since $-1 $4 addr $-1 $4 name $-1 $4 kept :1 "},
		{3, "", quorum.Holding{Status: quorum.StatusSplit},
			"%9 $5 state $5 split $4 left _ $5 votes %0 $7 waiters :0 $5 fence _ $5 since _ $4 addr _ $4 name _ $4 kept :1 "},
	} {
		out := command.Reply{Proto: test.proto}
		described := h.describe(test.key, quorum.Key{}, test.h)
		described.Kept = test.key == ""
		writeLock(&out, described)
		if got := strings.ReplaceAll(string(out.Bytes), "\r\n", " "); got != test.want {
			t.Errorf("got  %q\nwant %q", got, test.want)
		}
	}
}

// TestIdentity checks that Identity returns the same value until the client changes, and shortens
// long names.
func TestIdentity(t *testing.T) {
	client := newClient()
	first := client.Identity()
	if client.Identity() != first {
		t.Error("it was made again")
	}
	client.Name = strings.Repeat("x", 1<<20)
	second := client.Identity()
	if second == first || first.Name != "ann" || len(second.Name) != 128 || client.Identity() != second {
		t.Errorf("%d bytes of a name; before: %q", len(second.Name), first.Name)
	}
}
