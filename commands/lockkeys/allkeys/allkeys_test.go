package allkeys

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"redlock-proxy/commands/catalog/keys"
	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/command"
	"redlock-proxy/quorum"

	"github.com/hashicorp/go-multierror"
)

// fakeLocks holds the names on the masters, by database. No majority holds the stale names.
type fakeLocks struct {
	mu         sync.Mutex
	names      map[int][]string
	staleNames map[string]bool
	listings   int
	// removeErrors holds the error of removing each key. hangs is true if the masters do not reply.
	removeErrors map[string]error
	hangs        bool
}

func (l *fakeLocks) Names(ctx context.Context, db int, page func([]string) (bool, error)) error {
	if l.hangs {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	l.mu.Lock()
	names := slices.Clone(l.names[db])
	l.listings++
	l.mu.Unlock()
	if more, err := page(names); err != nil || !more {
		return err
	}
	_, err := page(names) // another master
	return err
}

func (l *fakeLocks) Databases(context.Context) ([]int, error) { return []int{0, 3}, nil }

func (l *fakeLocks) Remove(_ context.Context, key quorum.Key) (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.removeErrors[key.Name]; err != nil {
		return false, err
	}
	existed := slices.Contains(l.names[key.DB], key.Name)
	l.names[key.DB] = slices.DeleteFunc(l.names[key.DB], func(n string) bool { return n == key.Name })
	return existed, nil
}

func (l *fakeLocks) Read(_ context.Context, quorumKeys []quorum.Key) ([]quorum.Snapshot, error) {
	if len(quorumKeys) > readBatch {
		return nil, errors.New("too many at once")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	values := make([]quorum.Snapshot, len(quorumKeys))
	for i, key := range quorumKeys {
		values[i].Present = slices.Contains(l.names[key.DB], key.Name) && !l.staleNames[key.Name]
		if key.Name == "p:lock:b" {
			values[i].Value = "\x00redlock:h\x01f\x01v"
		}
	}
	return values, nil
}

// newAllKeys returns AllKeys with the prefix p: and the lock keys lock:*, and a buffer with the log
// messages.
func newAllKeys(l *fakeLocks) (*AllKeys, *bytes.Buffer) {
	var log bytes.Buffer
	count := byte(0)
	return New(Options{
		Locks: l, Register: l, LockKeys: keys.NewPatterns("lock:*"), Prefix: "p:",
		KeyOnMasters: func(db int, key string) quorum.Key { return quorum.Key{DB: db, Name: "p:" + key} },
		Random:       func(b []byte) { count++; b[0] = count },
		Logger:       slog.New(slog.NewTextHandler(&log, nil)),
	}), &log
}

// TestKeysOfOneNode checks that commands on all keys return and remove only the lock keys of the
// client's node.
func TestKeysOfOneNode(t *testing.T) {
	l := &fakeLocks{names: map[int][]string{0: {"p:lock:a", "p:lock:b", "p:other"}, 3: {"p:lock:a", "p:lock:c"}}}
	a, _ := newAllKeys(l)
	client := &command.Client{Proto: 2, ListsKey: func(key string) bool { return key == "lock:a" }}
	run := func(line, upstreamReply string) string {
		client.Ask = func(context.Context) ([]byte, error) { return []byte(upstreamReply), nil }
		words, out := strings.Fields(line), command.Reply{}
		for _, c := range a.Commands() {
			if c.Name == syntax.Lower(words[0]) {
				c.Run(command.Call{Ctx: t.Context(), Client: client, Args: syntax.Bytes(words), Out: &out})
			}
		}
		return strings.ReplaceAll(string(out.Bytes), "\r\n", " ")
	}
	for _, c := range []struct{ line, upstream, want string }{
		{"KEYS *", "*1\r\n$1\r\nx\r\n", "*2 $1 x $6 lock:a "},
		{"DBSIZE", ":1\r\n", ":2 "},
		{"SCAN 0", "*2\r\n$1\r\n0\r\n*0\r\n", "*2 $1 0 *1 $6 lock:a "},
		{"FLUSHALL", "+OK\r\n", "+OK "},
		{"KEYS *", "*0\r\n", "*0 "},
	} {
		if got := run(c.line, c.upstream); got != c.want {
			t.Errorf("%s: %q, want %q", c.line, got, c.want)
		}
	}
	if got := fmt.Sprint(l.names); got != "map[0:[p:lock:b p:other] 3:[p:lock:c]]" {
		t.Errorf("left are %s", got)
	}
}

// runCommand runs a command of a client. upstreamReply is the upstream's reply; "" means no
// upstream.
func runCommand(t *testing.T, a *AllKeys, upstreamReply string, line string) string {
	t.Helper()
	client := &command.Client{Proto: 2}
	if upstreamReply != "" {
		client.Ask = func(context.Context) ([]byte, error) { return []byte(upstreamReply), nil }
	}
	words := strings.Fields(line)
	var out command.Reply
	for _, c := range a.Commands() {
		if c.Name == syntax.Lower(words[0]) {
			c.Run(command.Call{Ctx: t.Context(), Client: client, Args: syntax.Bytes(words), Out: &out})
		}
	}
	return strings.ReplaceAll(string(out.Bytes), "\r\n", " ")
}

// TestReplies checks that the replies leave out keys that are not lock keys, keys that no majority
// holds, and keys of another database.
func TestReplies(t *testing.T) {
	for _, test := range []struct{ upstream, line, want string }{
		{"", "KEYS *", "*2 $6 lock:a $6 lock:b "},
		{"", "KEYS *b", "*1 $6 lock:b "},
		{"*1\r\n$1\r\nx\r\n", "KEYS lock:?", "*3 $1 x $6 lock:a $6 lock:b "},
		{"*0\r\n", "KEYS x", "*0 "},
		{"-NOPERM no\r\n", "KEYS *", "-NOPERM no "},
		{"", "DBSIZE", ":2 "},
		{":7\r\n", "DBSIZE", ":9 "},
		{"-LOADING\r\n", "DBSIZE", "-LOADING "},
		{"", "SCAN 0", "*2 $1 0 *2 $6 lock:a $6 lock:b "},
		{"", "SCAN 7", "*2 $1 0 *0 "},
		{"", "SCAN 0 TYPE zset", "*2 $1 0 *0 "},
		{"", "SCAN 0 TYPE String", "*2 $1 0 *1 $6 lock:a "},
		{"", "SCAN 0 TYPE hash", "*2 $1 0 *1 $6 lock:b "},
		{"", "SCAN +1", "-ERR invalid cursor "},
		{"", "SCAN 0 COUNT 0", "-ERR syntax error "},
		{"", "SCAN 0 COUNT 9223372036854775808", "-ERR value is not an integer or out of range "},
		{"", "SCAN 0 MATCH", "-ERR syntax error "},
		{"*2\r\n$1\r\n8\r\n*1\r\n$1\r\nx\r\n", "SCAN 0", "*2 $1 8 *1 $1 x "},
		{"*2\r\n$1\r\n0\r\n*1\r\n$1\r\nx\r\n", "SCAN 8 MATCH *a COUNT 1", "*2 $1 0 *2 $1 x $6 lock:a "},
		{"*2\r\n$1\r\n0\r\n*0\r\n", "SCAN 0 NEW option", "*2 $1 0 *0 "},
		{"*2\r\n$20\r\n18446744073709551615\r\n*0\r\n", "SCAN 0", "*2 $20 18446744073709551615 *0 "},
		{"*2\r\n$16\r\n4503599627370497\r\n*0\r\n", "SCAN 0",
			"-ERR cannot continue SCAN: the upstream's cursor 4503599627370497 looks like a cursor of lock keys; send SCAN to the upstream directly "},
		{"+strange\r\n", "SCAN 0", "+strange "},
		{"", "FLUSHDB x", "-ERR syntax error "},
		{"", "FLUSHDB ASYNC SYNC", "-ERR syntax error "},
	} {
		l := &fakeLocks{
			names:      map[int][]string{0: {"p:lock:b", "p:lock:a", "lock:x", "p:other", "p:lock:gone"}, 3: {"p:lock:c"}},
			staleNames: map[string]bool{"p:lock:gone": true},
		}
		a, _ := newAllKeys(l)
		if got := runCommand(t, a, test.upstream, test.line); got != test.want {
			t.Errorf("%s with the upstream reply %q: %q, want %q", test.line, test.upstream, got, test.want)
		}
	}
}

// TestFlush checks that a flush removes the lock keys, or nothing if the upstream refuses. The
// reply names a key that the proxy could not remove.
func TestFlush(t *testing.T) {
	noQuorum := &quorum.NoQuorumError{Masters: 3, VoteCount: 1, Causes: multierror.Append(nil, errors.New("down"))}
	for _, test := range []struct {
		upstream, line string
		removeErr      error
		want           string
		remaining      []string
		wantLog        string
	}{
		{"", "FLUSHDB", nil, "+OK ", []string{"p:other", "p:lock:c"},
			"level=INFO msg=\"lock keys were removed\" command=FLUSHDB db=0 removed=2"},
		{"+OK\r\n", "flushall sync", nil, "+OK ", []string{"p:other"}, "command=FLUSHALL db=0 removed=3"},
		{"-READONLY no\r\n", "FLUSHALL", nil, "-READONLY no ", []string{"p:other", "p:lock:a", "p:lock:b", "p:lock:c"}, ""},
		{"+OK\r\n", "FLUSHDB", noQuorum,
			"-NOQUORUM flush incomplete (all other keys and 1 lock key were removed): 'lock:b': ",
			[]string{"p:other", "p:lock:b", "p:lock:c"}, "level=WARN msg=\"not all lock keys were removed\""},
		{"+OK\r\n", "FLUSHDB", quorum.ErrForeign,
			"-ERR flush incomplete (all other keys and 1 lock key were removed): 'lock:b': ",
			[]string{"p:other", "p:lock:b", "p:lock:c"}, "level=WARN"},
	} {
		l := &fakeLocks{names: map[int][]string{0: {"p:other", "p:lock:a", "p:lock:b"}, 3: {"p:lock:c"}},
			removeErrors: map[string]error{"p:lock:b": test.removeErr}}
		a, log := newAllKeys(l)
		got := runCommand(t, a, test.upstream, test.line)
		if left := append(l.names[0], l.names[3]...); !strings.HasPrefix(got, test.want) ||
			!slices.Equal(left, test.remaining) ||
			!strings.Contains(log.String(), test.wantLog) {
			t.Errorf("%s: %q, want %q; left %q; logged %s", test.line, got, test.want, left, log.String())
		}
	}
}

// TestScanPages checks that a SCAN of many lock keys returns each key once, with and without a
// snapshot. With a snapshot, the proxy lists the names on the masters once.
func TestScanPages(t *testing.T) {
	for _, dropSnapshots := range []bool{false, true} {
		l := &fakeLocks{names: map[int][]string{}}
		for i := range 2500 {
			l.names[0] = append(l.names[0], fmt.Sprint("p:lock:", i))
		}
		a, _ := newAllKeys(l)
		returned, cursor, calls := map[string]int{}, "0", 0
		for ; calls == 0 || cursor != "0"; calls++ {
			words := strings.Fields(runCommand(t, a, "", "SCAN "+cursor+" COUNT 1"))
			cursor = words[2]
			for i := 5; i < len(words); i += 2 {
				returned[words[i]]++
			}
			// Other clients add keys.
			l.names[0] = append(l.names[0], fmt.Sprint("p:lock:new", calls))
			if dropSnapshots {
				a.snapshots = snapshots{}
			}
		}
		for i := range 2500 {
			if n := returned[fmt.Sprint("lock:", i)]; n != 1 {
				t.Fatalf("lock:%d was returned %d times", i, n)
			}
		}
		if wantListings := map[bool]int{false: 1, true: calls}[dropSnapshots]; l.listings != wantListings || calls < 20 ||
			len(a.snapshots.list) != 0 {
			t.Errorf("%d listings in %d calls, %d snapshots", l.listings, calls, len(a.snapshots.list))
		}
	}
}

// TestPage checks that one page has all keys of one position, because a cursor cannot point between
// two such keys.
func TestPage(t *testing.T) {
	all := []orderedKey{{1, "a"}, {2, "b"}, {2, "c"}, {2, "d"}, {math.MaxUint32, "e"}}
	matchEvery := func(string) bool { return true }
	for _, test := range []struct {
		from  uint32
		count int
		want  string
		next  uint32
		more  bool
	}{
		{0, 1, "a", 2, true}, {2, 1, "bcd", math.MaxUint32, true}, {math.MaxUint32, 1, "e", 0, false},
		{3, 9, "e", 0, false}, {0, 5, "abcde", 0, false},
	} {
		found, next, more := selectPage(all, test.from, test.count, matchEvery)
		if strings.Join(found, "") != test.want || next != test.next || more != test.more {
			t.Errorf("%d from %d: %q %d %v", test.count, test.from, found, next, more)
		}
	}
}

func TestCursor(t *testing.T) {
	for _, c := range []cursor{{}, {1, 2}, {1<<snapshotIDBits - 1, math.MaxUint32}} {
		n := c.encode()
		if got, isLockCursor := decodeCursor(n); got != c || !isLockCursor || n >= 1<<53 {
			t.Errorf("%v: %d, %v, %v", c, n, got, isLockCursor)
		}
	}
	for _, n := range []uint64{0, 1, 1<<40 - 1, 1<<52 - 1, 1 << 53, 1<<63 | 5, math.MaxUint64} {
		if _, isLockCursor := decodeCursor(n); isLockCursor {
			t.Errorf("%d is taken for a cursor of lock keys", n)
		}
	}
}

// TestSnapshots checks the limits on snapshots, and that add drops the oldest snapshot first.
func TestSnapshots(t *testing.T) {
	var s snapshots
	for i := range uint32(maxSnapshots + 3) {
		s.add(i, 0, []orderedKey{{i, "k"}})
	}
	if _, ok := s.find(2, 0); ok || len(s.list) != maxSnapshots {
		t.Errorf("%d snapshots", len(s.list))
	}
	if _, ok := s.find(5, 1); ok {
		t.Error("the snapshot of another database was found")
	}
	if found, ok := s.find(5, 0); !ok || found[0].position != 5 {
		t.Errorf("got %v", found)
	}
	s.add(99, 0, []orderedKey{{1, strings.Repeat("x", maxSnapshotBytes)}})
	if len(s.list) != 0 {
		t.Errorf("%d snapshots are left after one that is too large", len(s.list))
	}
}

// TestListTimeout checks that listing has a timeout, which includes the wait for other commands.
func TestListTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := newAllKeys(&fakeLocks{hangs: true})
		start, replies := time.Now(), make(chan string)
		for range maxListing + 2 {
			go func() { replies <- runCommand(t, a, "", "DBSIZE") }()
		}
		for range maxListing + 2 {
			if got := <-replies; got != "-ERR cannot list the lock keys: it took longer than 10s; try again " {
				t.Errorf("got %q", got)
			}
		}
		if elapsed := time.Since(start); elapsed != listTimeout {
			t.Errorf("after %v", elapsed)
		}
	})
}
