package cell_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"redlock-proxy/internal/redistest"
	"redlock-proxy/internal/resp"
	"redlock-proxy/quorum/cell"
)

// The tests in this file run random operations on random cells, both on a redis-server and with
// Apply, and compare the results. Few attempts, ballots and tokens exist, so that they often
// coincide.

// leases holds remaining times that even a slow test can distinguish.
var leases = []time.Duration{cell.NoExpiry, 100 * time.Second, 300 * time.Second, 900 * time.Second}

// fences holds adjacent numbers at both ends of the range. counters adds texts that are not fences.
var (
	fences   = []int64{1, 2, 10, 1_700_000_000_000_000, cell.MaxFence - 1, cell.MaxFence}
	counters = []string{
		"1", "2", "10", "007", "1700000000000000", "9007199254740990", "9007199254740991", "9007199254740992",
		"1e3", "-1", "", "0x10", "00000000000000001", "none",
	}
)

// slack limits the time between the reads of a key on the server and in the Store.
const slack = 20 * time.Second

// pool provides the parts of random cells and operations.
type pool struct {
	*rand.Rand
	keys     []string
	attempts []cell.Attempt
	ballots  []cell.Ballot
	changes  []cell.Change
	tokens   []string
}

func newPool(seed uint64) pool {
	s := cell.NumberedSource(big.NewInt(5))
	p := pool{
		Rand: rand.New(rand.NewPCG(seed, 1)), keys: []string{"k1", "k2"},
		tokens: []string{"", "me", "v00", "\x00#p\r\n", strings.Repeat("long", 300)},
	}
	for range 3 {
		p.attempts = append(p.attempts, s.Attempt())
		p.changes = append(p.changes, s.Change())
	}
	for round := range uint64(3) {
		p.ballots = append(p.ballots, s.Ballot(round+9))
	}
	return p
}

func pick[T any](p pool, all []T) T { return all[p.IntN(len(all))] }

func (p pool) ballotOrNone(b cell.Ballot) cell.Ballot {
	if p.IntN(3) == 0 {
		return ""
	}
	return b
}

func (p pool) value() cell.Value {
	v := cell.Value{Present: p.IntN(3) > 0}
	if v.Present {
		v.Text = pick(p, p.tokens)
	}
	for range p.IntN(cell.MaxChanges + 1) {
		v.Changes = append(v.Changes, pick(p, p.changes))
	}
	return v
}

func (p pool) cell() cell.Cell {
	switch p.IntN(7) {
	case 0:
		return cell.Cell{}
	case 6:
		return cell.Cell{Form: cell.Mark, Attempt: pick(p, p.attempts), Promised: pick(p, p.ballots)}
	case 1:
		value := cell.Value{Present: true, Text: pick(p, p.tokens)}
		return cell.Cell{Form: cell.Plain, Attempt: pick(p, p.attempts), Value: value}
	case 2:
		return cell.Cell{Form: cell.Blocking, Attempt: pick(p, p.attempts)}
	case 3:
		return cell.Cell{Form: cell.Foreign, Value: cell.Value{Present: true, Text: "foreign" + pick(p, p.tokens)}}
	default:
		return cell.Cell{
			Form: cell.Register, Attempt: pick(p, p.attempts),
			Promised: pick(p, p.ballots), Accepted: p.ballotOrNone(pick(p, p.ballots)), Value: p.value(),
		}
	}
}

func (p pool) op(now time.Duration) cell.Op {
	key := p.keys[0]
	switch p.IntN(13) {
	case 12:
		return cell.Extends{p.extend(p.keys[0]), p.extend(p.keys[1])}
	case 11:
		return cell.Read{Names: p.keys, HeadBytes: 512}
	case 10:
		return cell.Take{
			Names: p.keys[:1], Attempt: pick(p, p.attempts), Mark: pick(p, p.ballots), Tokens: []string{""},
			TTL: pick(p, leases), BeforeRedis7: p.IntN(2) == 0,
		}
	case 7:
		return cell.Take{
			Names: p.oneOrAll(), Attempt: pick(p, p.attempts), Tokens: []string{pick(p, p.tokens), pick(p, p.tokens)},
			TTL: pick(p, leases), Fence: pick(p, fences), BeforeRedis7: p.IntN(2) == 0,
		}
	case 8:
		return cell.Raise{Names: p.oneOrAll(), Attempt: pick(p, p.attempts), Fence: pick(p, fences)}
	case 9:
		return cell.Read{Names: p.keys, WithFences: true}
	case 0:
		return cell.Take{
			Names: p.keys[:1], Attempt: pick(p, p.attempts), Tokens: []string{pick(p, p.tokens)},
			TTL: pick(p, leases), BeforeRedis7: p.IntN(2) == 0,
		}
	case 1:
		return cell.Take{
			Names: p.keys, Attempt: pick(p, p.attempts),
			Tokens: []string{pick(p, p.tokens), pick(p, p.tokens)}, TTL: pick(p, leases),
		}
	case 2:
		return cell.Remove{
			Name: key, Attempt: pick(p, p.attempts),
			Mode: pick(p, []cell.RemovalMode{cell.Release, cell.Undo, cell.Clear, cell.IfAccepted, cell.IfBlocking, cell.IfMark}), AcceptedBallot: p.ballotOrNone(pick(p, p.ballots)),
		}
	case 3:
		return p.extend(key)
	case 4:
		op := cell.Prepare{Name: key, Ballot: pick(p, p.ballots), OnlyExpected: p.IntN(2) == 0}
		if op.OnlyExpected {
			op.Expected = pick(p, p.tokens)
		}
		return op
	case 5:
		op := cell.Accept{
			Name: key, Attempt: pick(p, p.attempts), Ballot: pick(p, p.ballots), Value: p.value(),
			NextBallot: p.ballotOrNone(pick(p, p.ballots)),
			KeepTTL:    p.IntN(2) == 0, BaseChange: p.value().LastChange(), Shared: p.IntN(2) == 0, TTL: pick(p, leases),
			Expiry: pick(p, leases), Uncertainty: pick(p, []time.Duration{0, 250 * time.Second}),
			Shift:    pick(p, []time.Duration{0, time.Hour, -time.Second, -time.Hour}),
			Deadline: now + pick(p, []time.Duration{-slack, slack}),
		}
		if p.IntN(3) == 0 {
			op.Mark = pick(p, p.ballots)
		}
		if op.Expiry != cell.NoExpiry {
			op.Expiry += now
		}
		return op
	default:
		return cell.Read{Names: p.keys}
	}
}

func (p pool) extend(key string) cell.Extend {
	return cell.Extend{Name: key, Token: pick(p, p.tokens), Attempt: pick(p, p.attempts), TTL: pick(p, leases)}
}

// oneOrAll returns the first key, or both keys.
func (p pool) oneOrAll() []string { return p.keys[:1+p.IntN(2)] }

// server is a redis-server with a Store that must behave like it.
type server struct {
	*redis.Client
	t     *testing.T
	store cell.Store
}

func startServer(t *testing.T) *server {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: redistest.New(t, redistest.Options{}).Addr(), Protocol: 2})
	t.Cleanup(func() { client.Close() })
	return &server{Client: client, t: t}
}

// put stores the same cell on the server and in the Store.
func (s *server) put(key string, c cell.Cell, timeLeft time.Duration) {
	s.Del(s.t.Context(), key)
	s.store.Delete(key)
	if c.Form == cell.Absent {
		return
	}
	if err := s.Set(s.t.Context(), key, c.String(), max(timeLeft, 0)).Err(); err != nil {
		s.t.Fatal(err)
	}
	s.store.Put(key, c, timeLeft)
}

// putFence stores the same text in the fence counter of a key on the server and in the Store, or
// removes the counter from both.
func (s *server) putFence(key, text string, exists bool) {
	key = cell.FenceKey(key)
	s.Del(s.t.Context(), key)
	s.store.Delete(key)
	if !exists {
		return
	}
	if err := s.Set(s.t.Context(), key, text, time.Hour).Err(); err != nil {
		s.t.Fatal(err)
	}
	s.store.Put(key, cell.Parse(text), time.Hour)
}

func (s *server) syncClock() {
	clock, err := s.Time(s.t.Context()).Result()
	if err != nil {
		s.t.Fatal(err)
	}
	s.store.Now = time.Duration(clock.UnixNano())
}

func (s *server) do(op cell.Op, withSource bool) cell.Answer {
	reply, err := s.Do(s.t.Context(), op.Words(withSource)...).Result()
	if errors.Is(err, redis.Nil) {
		reply, err = nil, nil
	}
	if err != nil {
		s.t.Fatalf("%#v: %v", op, err)
	}
	answer, err := op.Decode(reply)
	if err != nil {
		s.t.Fatalf("%#v: %v", op, err)
	}
	return answer
}

func (s *server) readState(key string) cell.KeyState {
	return s.do(cell.Read{Names: []string{key}}, true).KeyStates[0]
}

func isNear(a, b time.Duration) bool {
	if a == cell.NoExpiry || b == cell.NoExpiry {
		return a == b
	}
	return (a - b).Abs() < slack
}

func sameStates(a, b []cell.KeyState, left bool) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !reflect.DeepEqual(normalize(a[i].Cell), normalize(b[i].Cell)) || left && !isNear(a[i].TimeLeft, b[i].TimeLeft) {
			return false
		}
	}
	return true
}

// normalize returns a cell with nil for empty changes.
func normalize(c cell.Cell) cell.Cell {
	if len(c.Value.Changes) == 0 {
		c.Value.Changes = nil
	}
	return c
}

func TestOperationsMatchApply(t *testing.T) {
	s := startServer(t)
	for _, script := range cell.Scripts() {
		if sha, err := s.ScriptLoad(context.Background(), script.Source).Result(); err != nil || sha != script.SHA {
			t.Fatalf("loading %s gave %s, %v", script.SHA, sha, err)
		}
	}
	p := newPool(uint64(time.Now().UnixNano()))
	for n := range redistest.SampleCount(8000) {
		s.syncClock()
		cells := make([]string, len(p.keys))
		for _, key := range p.keys {
			if n%3 > 0 {
				break // use the cells that the last operation left
			}
			s.put(key, p.cell(), pick(p, leases))
			s.putFence(key, pick(p, counters), p.IntN(3) > 0)
		}
		for i, key := range p.keys {
			cells[i] = s.store.Get(key).String()
		}
		op := p.op(s.store.Now)
		got, want := s.do(op, n%2 == 0), op.Apply(&s.store)
		_, isTake := op.(cell.Take)
		if got.Applied != want.Applied || got.KeyStates != nil && !sameStates(got.KeyStates, want.KeyStates, !isTake) ||
			!isNear(got.Now, want.Now) || !slices.Equal(got.Fences, want.Fences) || !slices.Equal(got.AppliedKeys, want.AppliedKeys) {
			t.Fatalf("%#v on %q\n server %+v\n  store %+v", op, cells, got, want)
		}
		if got.KeyStates == nil && want.KeyStates != nil && !want.Applied {
			t.Fatalf("%#v on %q: the server does not tell what it found", op, cells)
		}
		for _, key := range []string{p.keys[0], p.keys[1], cell.FenceKey(p.keys[0]), cell.FenceKey(p.keys[1])} {
			got, want := s.readState(key), s.store.Get(key)
			// The server and the Store may expire it at different moments.
			expiresSoon := want.TimeLeft > 0 && want.TimeLeft < slack
			if !sameStates([]cell.KeyState{got}, []cell.KeyState{want}, true) && !(expiresSoon && got.Form == cell.Absent) {
				t.Fatalf("%#v on %q left under %s\n server %+v\n  store %+v", op, cells, key, got, want)
			}
			if expiresSoon {
				s.put(key, cell.Cell{}, 0)
			}
		}
	}
}

// TestHeadsWithoutPermission checks that a user without the right to GETRANGE or STRLEN receives
// whole cells.
func TestHeadsWithoutPermission(t *testing.T) {
	s := startServer(t)
	longCell := cell.Cell{
		Form: cell.Plain, Attempt: cell.NumberedSource(big.NewInt(1)).Attempt(),
		Value: cell.Value{Present: true, Text: strings.Repeat("long", 300)},
	}
	s.put("k", longCell, time.Hour)
	for _, denied := range []string{"", "-getrange", "-strlen"} {
		if err := s.Do(t.Context(), "ACL", "SETUSER", "default", "+@all", cmp.Or(denied, "+@all")).Err(); err != nil {
			t.Fatal(err)
		}
		got := s.do(cell.Read{Names: []string{"k", "absent"}, HeadBytes: 512}, true)
		value := got.KeyStates[0].Value
		if isWhole := value.UnreadBytes == 0; isWhole != (denied != "") || len(value.Text)+value.UnreadBytes != 1200 ||
			!strings.HasPrefix(longCell.Value.Text, value.Text) || got.KeyStates[1].Form != cell.Absent {
			t.Errorf("with %q: %d bytes and a rest of %d", denied, len(value.Text), value.UnreadBytes)
		}
	}
}

// TestReleasesMatchApply checks that one script for several releases does the same as each release
// alone.
func TestReleasesMatchApply(t *testing.T) {
	s, p := startServer(t), newPool(uint64(time.Now().UnixNano()))
	for _, script := range cell.Scripts() {
		s.ScriptLoad(t.Context(), script.Source)
	}
	for n := range redistest.SampleCount(2000) {
		s.syncClock()
		var releases cell.Releases
		for i := range 1 + p.IntN(6) {
			key := fmt.Sprint("r", i)
			if n%3 == 0 {
				s.put(key, p.cell(), pick(p, leases))
			}
			releases = append(releases, cell.Remove{Name: key, Attempt: pick(p, p.attempts), Mode: cell.Release})
		}
		raw, err := s.Do(t.Context(), wordsOf(t, releases.AppendTo(nil, n%2 == 0))...).Result()
		if err != nil {
			t.Fatalf("%v: %v", releases, err)
		}
		got := make([]cell.Answer, len(releases))
		if err := releases.Decode(raw, func(i int, a cell.Answer) { got[i] = a }); err != nil {
			t.Fatal(err)
		}
		for i, r := range releases {
			want := r.Apply(&s.store)
			if got[i].Applied != want.Applied || !want.Applied && !sameStates(got[i].KeyStates, want.KeyStates, true) {
				t.Fatalf("%#v of %d\n server %+v\n  store %+v", r, len(releases), got[i], want)
			}
			if got, want := s.readState(r.Name), s.store.Get(r.Name); !sameStates([]cell.KeyState{got}, []cell.KeyState{want}, true) {
				t.Fatalf("%#v left\n server %+v\n  store %+v", r, got, want)
			}
		}
	}
}

func wordsOf(t *testing.T, command []byte) []any {
	t.Helper()
	limits := resp.Limits{Line: 1 << 10, Bulk: 1 << 20, Elements: 1 << 10, Depth: 1, Total: 1 << 20}
	r := resp.NewReader(bytes.NewReader(command), limits)
	r.Begin()
	words, err := r.ReadValue()
	if err != nil {
		t.Fatal(err)
	}
	return words.([]any)
}

func TestNonStringIsForeign(t *testing.T) {
	s := startServer(t)
	s.LPush(t.Context(), "k1", "x")
	p := newPool(1)
	for range 300 {
		s.syncClock()
		op := p.op(s.store.Now)
		if _, isTake := op.(cell.Take); isTake && op.Words(true)[0] == "SET" {
			continue // SET NX GET returns WRONGTYPE
		}
		if answer := s.do(op, true); len(answer.KeyStates) == 0 || answer.KeyStates[0].Form != cell.Foreign {
			t.Fatalf("%#v found %+v", op, answer)
		}
		if s.LLen(t.Context(), "k1").Val() != 1 {
			t.Fatalf("%#v changed the list", op)
		}
	}
}
