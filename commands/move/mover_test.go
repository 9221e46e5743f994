package move

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-multierror"

	"redlock-proxy/commands/command"
	"redlock-proxy/commands/lockkeys/keyspace"
	"redlock-proxy/commands/lockkeys/keyspace/contents"
	"redlock-proxy/internal/resp"
	"redlock-proxy/quorum"
	"redlock-proxy/quorum/keygroup"
	"redlock-proxy/quorum/location"
)

// writeKeys writes lock keys of all types, and other keys.
func (r *testBench) writeKeys() {
	r.Helper()
	for _, line := range []string{
		"SET lock:text token PX 6000000", "SET lock:endless token", "SET lock-1 other PX 3600000",
		"HSET lock:hash thread:1 2 thread:2 1", "PEXPIRE lock:hash 3000000",
		"RPUSH lock:list a b a", "SADD lock:set 10 9 x", "PEXPIRE lock:set 4500000",
		"ZADD lock:zset 1.5 a -inf b inf c 3 d 0.1 e", "PEXPIRE lock:zset 9999900",
		"SET lock:{t}:1 one PX 5000000", "SET lock:{t}:2 two", "HSET lock:{t}:3 f v",
		"SET data 1", "SET unlock:x 1 PX 7000000", "XADD stream * f v",
	} {
		r.doLine(line)
	}
	r.do("SET", "lock:marked", "\x00redlock:hvalue\r\n")
	r.do("SET", "lock:empty", "")
	r.do("SET", "lock: with \x00 \xff", "\x00\xff")
	longList := []string{"RPUSH", "lock:long"}
	for i := range 2500 {
		longList = append(longList, strconv.Itoa(i%7))
	}
	r.do(longList...)
	r.do("SELECT", "3")
	r.doLine("SET lock:text in-3 PX 8000000")
	r.do("EVAL", "for i = 0, 1199 do redis.call('SET', 'lock:many:' .. i, i, 'PX', 2000000 + i) end", "0")
	r.do("SELECT", "0")
}

// TestMoveAndMoveBack moves lock keys of all types in several databases to the masters and back.
// Afterwards they are only at the target, with their expiry. The move removes other lock keys at
// the target, and touches no other key.
func TestMoveAndMoveBack(t *testing.T) {
	t.Parallel()
	r := newTestBench(t)
	r.writeKeys()
	r.masters.keys[mastersTestKey(0, "lock:text")] = storedValue{value: "of before"}
	r.masters.keys[mastersTestKey(5, "lock:besides")] = storedValue{value: "of before"}
	r.masters.keys[quorum.Key{Name: "p:other"}] = storedValue{value: "a LOCK of another key"}
	r.masters.keys[quorum.Key{Name: "lock:unprefixed"}] = storedValue{value: "of another program"}
	r.masters.keys[mastersTestKey(0, "lock:foreign")] = storedValue{value: "x", foreign: true}
	before := r.readUpstream()
	r.wantMove(Request{}, "the locks are at the masters now: 2 hash, 2 list, 1 set, ", " string, 1 zset\n",
		"removed 1 lock key that existed only at the masters\n", "from the upstream")
	r.wantKeys(r.readUpstream(), filterKeys(before, isOrdinaryKey))
	r.wantAtMasters(filterKeys(before, isLock))
	for key, wantRemoved := range map[quorum.Key]bool{mastersTestKey(5, "lock:besides"): true, {Name: "p:other"}: false,
		{Name: "lock:unprefixed"}: false, mastersTestKey(0, "lock:foreign"): false} {
		if _, exists := r.masters.keys[key]; exists == wantRemoved {
			t.Errorf("%v: there %v", key, exists)
		}
	}
	if _, err := r.move(Request{ToUpstream: true}); !errors.Is(err, quorum.ErrForeign) ||
		!strings.HasPrefix(err.Error(), "the locks stay at the masters: lock key 'lock:foreign'") {
		t.Errorf("a foreign lock: %v", err)
	}
	delete(r.masters.keys, mastersTestKey(0, "lock:foreign"))
	shared := mastersTestKey(0, "lock:read")
	r.masters.keys[shared] = storedValue{value: keygroup.LoneHolder("me", quorum.Unlimited)}
	if _, err := r.move(Request{ToUpstream: true}); !errors.Is(err, errSeveralHolders) {
		t.Errorf("a shared lock: %v", err)
	}
	delete(r.masters.keys, shared)
	r.doLine("SET lock:besides of-before")
	r.doLine("SET lock:set a-text")
	r.wantMove(Request{ToUpstream: true}, "the locks are at the upstream now: ",
		"removed 1 lock key that existed only at the upstream\n", "from the masters")
	r.wantKeys(r.readUpstream(), before)
	if len(r.masters.keys) != 2 {
		t.Errorf("left at the masters: %v", r.masters.keys)
	}
	want := []location.Place{location.MovingToMasters, location.Masters, location.MovingToUpstream, location.Upstream}
	if !slices.Equal(r.masters.places, want) {
		t.Errorf("eras: %v", r.masters.places)
	}
}

// wantAtMasters compares the keys at the masters.
func (r *testBench) wantAtMasters(want map[string]upstreamKey) {
	r.Helper()
	r.masters.mu.Lock()
	defer r.masters.mu.Unlock()
	for dbAndKey, w := range want {
		number, key, _ := strings.Cut(dbAndKey, " ")
		db, _ := strconv.Atoi(number)
		h, exists := r.masters.keys[mastersTestKey(db, key)]
		content, err := contents.Decode(h.value)
		switch {
		case !exists || err != nil:
			r.Errorf("%s is lost: %v", dbAndKey, err)
		case content.Kind().String() != strings.Fields(w.content)[0]:
			r.Errorf("%s is a %v, want %.200s", dbAndKey, content.Kind(), w.content)
		case !r.isExpiryKept(h.expiry, w.expiry):
			r.Errorf("%s ends %v, want %v", dbAndKey, h.expiry, w.expiry)
		}
	}
}

// TestTTL checks that a copied key lives as long as the key at the source, or for a moment longer.
func TestTTL(t *testing.T) {
	if got := (lock{}).ttl(); got != quorum.NoExpiry {
		t.Errorf("without an expiry: %v", got)
	}
	if got := (lock{expiry: time.Now().Add(-time.Second)}).ttl(); got != minCopyTTL {
		t.Errorf("after the expiry: %v", got)
	}
	expiry := time.Now().Add(time.Minute)
	if got := (lock{expiry: expiry}).ttl(); got <= time.Until(expiry) || got > time.Minute+time.Millisecond || got%time.Millisecond != 0 {
		t.Errorf("a minute before the expiry: %v", got)
	}
}

// TestTTLLongerThanDuration moves a lock with a TTL that is meant to be endless.
func TestTTLLongerThanDuration(t *testing.T) {
	t.Parallel()
	r := newTestBench(t)
	r.doLine("SET lock:x token PX 10000000000000")
	r.mustMove(Request{})
	if got, exists := r.masters.keys[mastersTestKey(0, "lock:x")]; !exists || !got.expiry.IsZero() {
		t.Errorf("at the masters: %v, %v", exists, got)
	}
}

// TestAbortAfterFailure checks each step. If the step fails, the locks stay at the source
// unchanged, and the next run moves them.
func TestAbortAfterFailure(t *testing.T) {
	t.Parallel()
	for _, back := range []bool{false, true} {
		for _, c := range []struct {
			step     string
			accepted bool // the masters accept the proposal nevertheless
		}{
			{"may move", false}, {"names", false}, {"read", false}, {"update", false},
			{"to to-masters", false}, {"to to-masters", true}, {"to to-upstream", false}, {"to to-upstream", true},
			{"to masters", false}, {"to upstream", false},
		} {
			if c.step == "update" && back || c.step == "read" && !back {
				continue // the step follows the decision, or does not occur
			}
			if strings.HasPrefix(c.step, "to ") && strings.HasSuffix(c.step, "upstream") != back {
				continue
			}
			t.Run(fmt.Sprint(c.step, " back=", back, " lost=", c.accepted), func(t *testing.T) {
				t.Parallel()
				r := newTestBench(t)
				r.doLine("SET lock:a token PX 60000")
				r.doLine("HSET lock:b f v")
				order := Request{ToUpstream: back}
				if back {
					r.mustMove(Request{})
				}
				before, source := r.readUpstream(), r.masters.at.Place
				var failedCount atomic.Int64
				r.masters.acceptDespiteError = c.accepted
				r.masters.failStep = func(step string) error {
					if step == c.step && failedCount.Add(1) == 1 {
						return errors.New("it failed")
					}
					return nil
				}
				_, err := r.move(order)
				if err == nil || !strings.Contains(err.Error(), "it failed") {
					t.Fatalf("%v", err)
				}
				if at, _ := r.masters.CurrentLocation(); at.Place != source {
					t.Fatalf("the locks are at %v: %v", at, err)
				}
				if !back {
					r.wantKeys(r.readUpstream(), before)
				} else if len(r.masters.keys) != 2 {
					t.Errorf("left at the masters: %v", r.masters.keys)
				}
				r.mustMove(order)
				r.mustMove(Request{ToUpstream: !back})
			})
		}
	}
}

// TestProposalAcceptedDespiteError checks that the move succeeds if the masters accepted the
// proposal, although the run got an error.
func TestProposalAcceptedDespiteError(t *testing.T) {
	t.Parallel()
	r := newTestBench(t)
	r.doLine("SET lock:a token")
	r.masters.failStep = func(step string) error {
		if step != "to masters" {
			return nil
		}
		r.masters.mu.Lock()
		defer r.masters.mu.Unlock()
		r.masters.acceptDespiteError = true
		return errors.New("not heard")
	}
	r.wantMove(Request{}, "the locks are at the masters now: 1 string", "removed 1 lock key from the upstream")
	if len(r.masters.keys) != 1 {
		t.Errorf("%v", r.masters.keys)
	}
}

// TestLocationInError checks that the error names the location of the locks if the masters stop
// replying at a step.
func TestLocationInError(t *testing.T) {
	t.Parallel()
	for step, want := range map[string]string{
		"confirm":    "the locks stay at the upstream: a majority of 3 masters agreed only",
		"update":     "the locks are at the upstream, and stay there: commands on lock keys continue once a majority of the masters votes: ",
		"to masters": "the locks are at the upstream or already at the masters: commands on lock keys wait until a majority of the masters votes and decides: ",
	} {
		r := newTestBench(t)
		r.mover.lease = 200 * time.Millisecond
		r.doLine("SET lock:a token PX 60000")
		var unreachable atomic.Bool
		r.masters.failStep = func(current string) error {
			if unreachable.Store(unreachable.Load() || current == step); unreachable.Load() {
				return &quorum.NoQuorumError{Masters: 3, AgreementTime: time.Second}
			}
			return nil
		}
		_, err := r.move(Request{})
		if err == nil || !strings.HasPrefix(err.Error(), want) ||
			!strings.HasPrefix(command.Failure(err), "NOQUORUM "+want) {
			t.Errorf("%s: %v, want %s", step, err, want)
		}
	}
}

// TestSimultaneousMoves checks two simultaneous runs at two proxies. One run moves the locks. The
// other run waits until the move has ended, and then finds the locks at the target.
func TestSimultaneousMoves(t *testing.T) {
	t.Parallel()
	for _, order := range []Request{{}, {ToUpstream: true}} {
		r := newTestBench(t)
		r.writeKeys()
		if order.ToUpstream {
			r.mustMove(Request{})
		}
		r.masters.places = nil
		var reports [2][]string
		var errs [2]error
		var wg sync.WaitGroup
		for i, m := range []*Mover{r.mover, r.newMover()} {
			wg.Go(func() { reports[i], errs[i] = m.Move(t.Context(), order) })
		}
		wg.Wait()
		both := fmt.Sprint(reports)
		if errs[0] != nil || errs[1] != nil || strings.Count(both, "nothing to move: ") != 1 ||
			strings.Count(both, " now: ") != 1 || len(r.masters.places) != 2 || r.masters.at.Place != order.target() {
			t.Errorf("%+v: %v, %v; %s; eras %v", order, errs[0], errs[1], both, r.masters.places)
		}
	}
}

// TestConnectionLost checks that a run that loses its connection fails, and does not continue on a
// different connection. If the run loses the connection just before it claims the era, it starts
// again instead.
func TestConnectionLost(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"may move", "to to-masters", "update", "names"} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			r := newTestBench(t)
			r.doLine("SET lock:a token PX 60000")
			r.do("SELECT", "1")
			r.doLine("SET lock:b token")
			r.do("SELECT", "0")
			before := r.readUpstream()
			var lost atomic.Bool
			r.masters.failStep = func(at string) error {
				if at == step && !lost.Swap(true) {
					r.do("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
				}
				return nil
			}
			_, err := r.move(Request{})
			r.masters.failStep = nil
			if at, _ := r.masters.CurrentLocation(); step == "to to-masters" {
				if err != nil || at.Place != location.Masters || len(r.masters.places) != 4 {
					t.Fatalf("%v: %v, eras %v", at, err, r.masters.places)
				}
				return
			} else if err == nil || at.Place != location.Upstream {
				t.Fatalf("%v: %v", at, err)
			}
			r.wantKeys(r.readUpstream(), before)
			r.wantMove(Request{}, "now: 2 string")
		})
	}
}

// TestRefusedClaim checks that a move ends if the upstream refuses the claim of its era, because the
// key of the record has another type. A move that begins later is not decided.
func TestRefusedClaim(t *testing.T) {
	t.Parallel()
	r := newTestBench(t)
	r.doLine("SET lock:a token PX 60000")
	begun := 0
	r.masters.failStep = func(step string) error {
		if step != "to to-masters" {
			return nil
		}
		if begun++; begun > 1 {
			return errors.New("the move began again")
		}
		r.do("SET", location.RecordKey, "other")
		return nil
	}
	want := []location.Place{location.MovingToMasters, location.Upstream}
	for range 2 {
		_, err := r.move(Request{})
		if err == nil || !strings.HasPrefix(err.Error(), "the locks stay at the upstream: the upstream refused H") ||
			!strings.Contains(err.Error(), "WRONGTYPE") || !slices.Equal(r.masters.places, want) {
			t.Errorf("%v, eras %v", err, r.masters.places)
		}
	}
	r.do("DEL", location.RecordKey)
	r.masters.failStep = nil
	r.wantMove(Request{}, "now: 1 string")
}

// TestStalledMove checks that a run that stalled until another run ended the move writes nothing in
// the next era, and does not change the decision.
func TestStalledMove(t *testing.T) {
	t.Parallel()
	for name, decisions := range map[string][]location.Place{
		"given up": {location.Upstream}, "taken over": {location.MovingToMasters},
		"begun anew":       {location.Upstream, location.MovingToMasters},
		"moved by another": {location.MovingToMasters, location.Masters},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newTestBench(t)
			for i := range 50 {
				r.do("SET", fmt.Sprint("lock:", i), "token")
			}
			before := r.readUpstream()
			var updates atomic.Int64
			writes := 0
			r.masters.failStep = func(step string) error {
				if step == "update" && updates.Add(1) == 20 {
					r.masters.mu.Lock()
					defer r.masters.mu.Unlock()
					for _, to := range decisions {
						r.masters.decide(to)
					}
					writes = r.masters.writes
				}
				return nil
			}
			_, err := r.move(Request{})
			if err == nil || !strings.HasSuffix(err.Error(), "move --abort or another proxy has ended this move") {
				t.Fatalf("%v", err)
			}
			if at, _ := r.masters.CurrentLocation(); at.Place != decisions[len(decisions)-1] || r.masters.writes != writes {
				t.Errorf("%v after %d writes, of which %d were late", at, r.masters.writes, r.masters.writes-writes)
			}
			r.wantKeys(r.readUpstream(), before)
		})
	}
}

// TestUnfinishedMove checks that a run waits for the end of another proxy's move, or aborts it.
func TestUnfinishedMove(t *testing.T) {
	t.Parallel()
	for _, order := range []Request{{}, {ToUpstream: true}, {Abort: true}} {
		for _, at := range []location.Place{location.MovingToMasters, location.MovingToUpstream} {
			t.Run(fmt.Sprintf("%+v %v", order, at), func(t *testing.T) {
				t.Parallel()
				r := newTestBench(t)
				r.doLine("SET lock:a token")
				r.masters.keys[mastersTestKey(0, "lock:b")] = storedValue{value: "token"}
				r.masters.at.Place = at
				want := order.target()
				if order.Abort {
					want = at.Source()
				}
				r.wantMove(order, "at the "+want.String())
				if current, _ := r.masters.CurrentLocation(); current.Place != want {
					t.Fatalf("%v", current)
				}
			})
		}
	}
}

// TestLocksAlreadyAtTarget checks a move whose locks are already at the target. It counts
// leftovers, and removes them if the operator orders it.
func TestLocksAlreadyAtTarget(t *testing.T) {
	t.Parallel()
	r := newTestBench(t)
	r.masters.keys[mastersTestKey(0, "lock:left")] = storedValue{value: "x"}
	// The lock key may have been kept because the upstream lacks it.
	r.wantMove(Request{ToUpstream: true}, "nothing to move: the locks are at the upstream\n", "at the masters: an earlier move left them")
	if len(r.masters.keys) != 1 {
		t.Errorf("%v", r.masters.keys)
	}
	r.wantMove(Request{ToUpstream: true, CloseForeignConns: true}, "nothing to move: ", "removed 1 lock key from the masters")
	if len(r.masters.keys) != 0 || len(r.masters.places) != 0 {
		t.Errorf("%v, %v", r.masters.keys, r.masters.places)
	}
	r.masters.at.Place = location.Masters
	r.doLine("SET lock:left x")
	// The lock key may belong to a client that locks at the upstream.
	r.wantMove(Request{}, "nothing to move: ", "found 1 lock key at the upstream: ")
	if left := r.readUpstream(); len(left) != 1 {
		t.Errorf("%v", left)
	}
	r.wantMove(Request{CloseForeignConns: true}, "nothing to move: ", "removed 1 lock key from the upstream")
	if left := r.readUpstream(); len(left) != 0 || len(r.masters.places) != 0 {
		t.Errorf("%v, %v", left, r.masters.places)
	}
	r.wantMove(Request{Abort: true}, "nothing to abort: the locks are at the masters, ")
}

// TestLocksNeverMoved checks a move to the masters if the locks are there by the setting, in an era
// that a change of the masters began. Lock keys at the upstream are not left by a move.
func TestLocksNeverMoved(t *testing.T) {
	t.Parallel()
	r := newTestBench(t)
	r.masters.at, r.masters.undecided = quorum.Location{Place: location.Masters, Era: 1}, true
	r.doLine("SET lock:used x")
	for _, closeForeign := range []bool{false, true} {
		if got := r.mustMove(Request{CloseForeignConns: closeForeign}); got != "nothing to move: the locks are at the masters" {
			t.Errorf("%v: %s", closeForeign, got)
		}
	}
	if left := r.readUpstream(); len(left) != 1 {
		t.Errorf("%v", left)
	}
}

// TestForeignConnections checks that a connection that no proxy made prevents the move, unless the
// operator lets the move close it. Connections of proxies that have paused their commands stay
// open.
func TestForeignConnections(t *testing.T) {
	t.Parallel()
	r := newTestBench(t)
	r.doLine("SET lock:a token")
	direct := r.dial()
	_, err := direct.Do("CLIENT", "SETNAME", "billing")
	mustSucceed(t, err)
	_, err = r.move(Request{})
	if err == nil || !strings.Contains(err.Error(),
		"connections at the upstream may belong to clients that lock there: "+direct.LocalAddr()+" name=billing; ") {
		t.Fatalf("%v", err)
	}
	if at, _ := r.masters.CurrentLocation(); at.Place != location.Upstream {
		t.Fatalf("%v", at)
	}
	if _, err := direct.Do("PING"); err != nil {
		t.Fatal("the connection was closed: ", err)
	}
	r.masters.proxies = append(r.masters.proxies, "other")
	if _, err := r.move(Request{CloseForeignConns: true}); err == nil ||
		!strings.Contains(err.Error(), "proxies did not pause commands on lock keys in time: other") ||
		r.masters.at.Place != location.Upstream {
		t.Errorf("%v", err)
	}
	r.masters.proxies = r.masters.proxies[:1] // the second proxy no longer announces itself
	r.wantMove(Request{CloseForeignConns: true}, "connections of clients without a proxy at the upstream: "+direct.LocalAddr(),
		"closed 1 connection at the upstream")
	if _, err := direct.Do("PING"); err == nil {
		t.Error("the foreign connection is still open")
	}
	r.do("PING")
}

// TestUnfitKeys checks that the error names keys that the masters cannot store, and that the run
// decides nothing.
func TestUnfitKeys(t *testing.T) {
	t.Parallel()
	r := newTestBench(t)
	r.doLine("XADD lock:stream * f v")
	r.do("SET", "lock:text", strings.Repeat("x", keyspace.MaxValue+1))
	_, err := r.move(Request{})
	if err == nil || !strings.Contains(err.Error(), "'lock:stream' (database 0): a stream") ||
		len(r.masters.places) > 0 {
		t.Errorf("%v", err)
	}
	r.doLine("DEL lock:text lock:stream")
	r.do("HSET", "lock:hash", "f", strings.Repeat("x", keyspace.MaxValue))
	if _, err := r.move(Request{}); err == nil ||
		!strings.Contains(err.Error(), "'lock:hash' (database 0): more than 1048576 bytes") {
		t.Errorf("%v", err)
	}
}

// TestExpiringFields checks that the move refuses a hash with a field that expires by itself.
func TestExpiringFields(t *testing.T) {
	t.Parallel()
	r := newTestBench(t)
	r.doLine("HSET lock:hash f v g w")
	r.doLine("HSET lock:plain f v g w")
	for _, count := range []string{"subexpiry", "keys_with_volatile_items"} {
		r.alterReplies(func(words []string) any {
			switch {
			case words[0] == "INFO" && len(words) == 2:
				return "# Keyspace\r\ndb0:keys=2,expires=0,avg_ttl=0," + count + "=1\r\n"
			case words[0] == "HPEXPIRETIME" && slices.Equal(words[2:4], []string{"FIELDS", "2"}) &&
				words[1] == "lock:hash":
				return []any{int64(-1), time.Now().Add(time.Minute).UnixMilli()}
			case words[0] == "HPEXPIRETIME":
				return []any{int64(-1), int64(-1)}
			}
			return nil
		})
		if _, err := r.move(Request{}); err == nil || !strings.HasSuffix(err.Error(),
			"that the masters cannot store: 'lock:hash' (database 0): a hash with a field that expires by itself") {
			t.Errorf("%s: %v", count, err)
		}
	}
}

// TestFieldExpiryDuringRead checks a field that expires while the move reads it. The move must not
// copy it as a field without an expiry.
func TestFieldExpiryDuringRead(t *testing.T) {
	t.Parallel()
	r := newTestBench(t)
	r.doLine("HSET lock:hash f v g expiring")
	r.alterReplies(func(words []string) any {
		at, _ := r.masters.CurrentLocation()
		switch {
		case words[0] == "INFO" && len(words) == 2:
			return "# Keyspace\r\ndb0:keys=1,expires=0,avg_ttl=0,subexpiry=1\r\n"
		case words[0] != "HPEXPIRETIME":
			return nil
		case len(words) == 5:
			return []any{int64(-1)}
		case !at.Place.Moves(): // the field gets its expiry after this read
			return []any{int64(-1), int64(-1)}
		}
		r.doLine("HDEL lock:hash g")
		return []any{int64(-1), int64(-2)}
	})
	r.mustMove(Request{})
	if got := r.masters.keys[mastersTestKey(0, "lock:hash")].value; got == "" || strings.Contains(got, "expiring") {
		t.Errorf("copied %q", got)
	}
}

// TestMissingPermissions checks that a run finds a missing permission at the upstream before the
// first decision. If the upstream only refuses to close other connections, the run fails before it
// copies a lock.
func TestMissingPermissions(t *testing.T) {
	t.Parallel()
	r := newTestBench(t)
	r.doLine("SET lock:a token")
	direct := r.dial()
	_, err := direct.Do("PING")
	mustSucceed(t, err)
	for _, c := range []struct {
		command string
		eras    int
		want    string
	}{
		{"CLIENT LIST", 0, "the locks stay at the upstream: the upstream refused CLIENT: NOPERM"},
		{"INFO", 0, "the locks stay at the upstream: the upstream refused INFO: NOPERM"},
		{"CLIENT KILL ID " + absentClientID, 0, "the locks stay at the upstream: the upstream refused CLIENT: NOPERM"},
		{"SCAN", 0, "the locks stay at the upstream: the upstream refused SCAN: NOPERM"},
		{"PTTL", 0, "the locks stay at the upstream: the upstream refused PTTL: NOPERM"},
		{"CLIENT KILL ID " + absentClientID[:1], 2,
			"the locks stay at the upstream: cannot close connections at the upstream: the upstream refused CLIENT: NOPERM"},
	} {
		r.masters.places = nil
		r.alterReplies(func(words []string) any {
			line := strings.Join(words, " ")
			if c.eras > 0 && strings.HasPrefix(line, "CLIENT KILL ID ") && words[3] != absentClientID ||
				c.eras == 0 && strings.HasPrefix(line, c.command) {
				return resp.Error("NOPERM no")
			}
			return nil
		})
		if _, err := r.move(Request{CloseForeignConns: true}); err == nil || !strings.HasPrefix(err.Error(), c.want) ||
			len(r.masters.places) != c.eras {
			t.Errorf("%s: %v after %v", c.command, err, r.masters.places)
		}
	}
}

// TestReplicaRefusal checks that no move starts if the upstream is a replica.
func TestReplicaRefusal(t *testing.T) {
	t.Parallel()
	r := newTestBench(t)
	r.doLine("REPLICAOF 127.0.0.1 1")
	if _, err := r.move(Request{}); err == nil ||
		!strings.Contains(err.Error(), `the locks stay at the upstream: the upstream is not a master but a "slave"`) {
		t.Errorf("%v", err)
	}
}

// TestUpstreamFailover checks that a failover of the upstream aborts a move before its decision.
// After the decision, the run keeps the copies at the source, and the report says so.
func TestUpstreamFailover(t *testing.T) {
	t.Parallel()
	failures := map[string]func(r *testBench){
		"another master": func(r *testBench) {
			r.masters.failStep = func(step string) error {
				if step == "check current" {
					return errors.New("the Sentinels report another master")
				}
				return nil
			}
		},
		"another run_id": func(r *testBench) { r.alterInfo("run_id:other\r\nrole:master\r\n") },
		"a replica": func(r *testBench) {
			r.alterInfo(*r.infoText.Load() + "role:slave\r\n")
		},
		"a replica less": func(r *testBench) {
			r.alterInfo(*r.infoText.Load() + "connected_slaves:1\r\n")
		},
	}
	for name, fail := range failures {
		for _, order := range []Request{{}, {ToUpstream: true}} {
			for _, decided := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s back=%v decided=%v", name, order.ToUpstream, decided), func(t *testing.T) {
					t.Parallel()
					r := newTestBench(t)
					r.doLine("SET lock:a token PX 60000")
					if order.ToUpstream {
						r.mustMove(Request{})
					}
					r.alterInfo(r.do("INFO").(string) + "connected_slaves:2\r\n")
					source, target := r.masters.at.Place, order.target()
					trigger := source.MovingPlace()
					if decided {
						trigger = target
					}
					r.masters.failStep = func(step string) error {
						if step == "to "+trigger.String() {
							fail(r)
						}
						return nil
					}
					report, err := r.move(order)
					hasSource := len(r.masters.keys) == 1
					if !order.ToUpstream {
						hasSource = len(r.readUpstream()) == 1
					}
					switch at, _ := r.masters.CurrentLocation(); {
					case !hasSource:
						t.Error("the locks at the source are gone")
					case !decided && (err == nil || at.Place != source):
						t.Errorf("it moved: %v, %v", at, err)
					case decided && (err != nil || at.Place != target ||
						!strings.Contains(report, "kept the lock keys at the "+source.String())):
						t.Errorf("%v, %v, %q", at, err, report)
					}
				})
			}
		}
	}
}

// alterInfo replaces the reply to INFO from now on, also within a move.
func (r *testBench) alterInfo(text string) { r.infoText.Store(&text) }

// TestSecondMoveRefusal checks that a proxy refuses a second run. The first run can be aborted,
// and aborts if its context ends.
func TestSecondMoveRefusal(t *testing.T) {
	t.Parallel()
	r := newTestBench(t)
	r.masters.proxies = append(r.masters.proxies, "stopped")
	for _, endMove := range []func(cancel func()){
		func(func()) {
			if _, err := r.mover.Move(r.Context(), Request{Abort: true}); err != nil {
				t.Error(err)
			}
		},
		func(cancel func()) { cancel() },
	} {
		r.mover.pauseTimeout = time.Minute
		ctx, cancel := context.WithCancel(r.Context())
		paused, result := make(chan bool), make(chan error)
		r.mover.opts.Logger = logSteps(func(step string) {
			if strings.HasPrefix(step, "decided: to-masters") {
				close(paused)
			}
		})
		go func() {
			_, err := r.mover.Move(ctx, Request{})
			result <- err
		}()
		<-paused
		if _, err := r.mover.Move(r.Context(), Request{}); !errors.Is(err, ErrRunning) {
			t.Errorf("%v", err)
		}
		endMove(cancel)
		if err := <-result; err == nil {
			t.Error("it was not ended")
		}
		cancel()
		if at, _ := r.masters.CurrentLocation(); at.Place != location.Upstream {
			t.Errorf("%v", at)
		}
	}
}

// TestCommonPrefix checks that SCAN skips no key that matches.
func TestCommonPrefix(t *testing.T) {
	for _, c := range []struct {
		globs []string
		want  string
	}{
		{[]string{"lock:*"}, "lock:"}, {[]string{"lock:*", "lo?k-*"}, "lo"}, {[]string{"a*", "b*"}, ""},
		{[]string{"*"}, ""},
		{[]string{`l\*`, "l:*"}, "l"}, {[]string{"exact"}, "exact"}, {nil, ""},
	} {
		if got := commonPrefix(c.globs); got != c.want {
			t.Errorf("%q: %q", c.globs, got)
		}
	}
}

// TestImpossibleMove checks that the run decides nothing if the locks cannot be read, or if the target
// cannot store them.
func TestImpossibleMove(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		back    bool
		prepare func(r *testBench)
		want    string
	}{
		{false, func(r *testBench) { r.masters.room = 500 },
			"no room for 2 lock keys of about 534 bytes: master m has room for less (maxmemory)"},
		{true, func(r *testBench) { r.doLine("CONFIG SET maxmemory 1") }, "OOM "},
		{true, func(r *testBench) {
			r.do("CONFIG", "SET", "maxmemory", strconv.Itoa(1<<23))
			r.masters.keys[mastersTestKey(0, "lock:large")] = storedValue{value: strings.Repeat("x", keyspace.MaxValue)}
			for i := range 8 {
				r.masters.keys[mastersTestKey(0, fmt.Sprint("lock:large:", i))] = r.masters.keys[mastersTestKey(0, "lock:large")]
			}
		}, "the upstream has room for "},
		{true, func(r *testBench) { r.masters.keys[mastersTestKey(16, "lock:c")] = storedValue{value: "token"} },
			"the upstream refused SELECT: ERR DB index is out of range"},
		{true, func(r *testBench) { r.doLine("CONFIG SET min-replicas-to-write 1") }, "NOREPLICAS"},
		{false, func(r *testBench) { r.doLine("ACL SETUSER default -del") }, "the upstream refused DEL: NOPERM"},
		{false, func(r *testBench) { r.doLine("ACL SETUSER default resetkeys ~lock:*") }, "the upstream refused HSETNX: NOPERM"},
		{false, func(r *testBench) {
			r.masters.failStep = func(step string) error {
				if step == "read" {
					return errors.New("ERR DB index is out of range")
				}
				return nil
			}
		}, "(database 0) at the masters: ERR DB index is out of range"},
		{true, func(r *testBench) {
			r.masters.failStep = func(step string) error {
				if step == "read" {
					return &quorum.NoQuorumError{Masters: 5, VoteCount: 5, Causes: &multierror.Error{}}
				}
				return nil
			}
		}, "(database 0) at the masters: 5 of 5 masters answered, and the state of the key is undetermined"},
		{false, func(r *testBench) { r.mover.copyTimeout = time.Millisecond }, "moving 2 lock keys would take too long: about "},
	} {
		t.Run(c.want, func(t *testing.T) {
			r := newTestBench(t)
			r.doLine("SET lock:a token PX 60000")
			r.doLine("SET lock:b token")
			if c.back {
				r.mustMove(Request{})
			}
			r.masters.places = nil
			c.prepare(r)
			if _, err := r.move(Request{ToUpstream: c.back}); err == nil || !strings.Contains(err.Error(), c.want) ||
				len(r.masters.places) > 0 {
				t.Errorf("%v after %v, want %s", err, r.masters.places, c.want)
			}
		})
	}
}

// TestFailedRead checks that a run reads a key again if too few masters have answered.
func TestFailedRead(t *testing.T) {
	t.Parallel()
	r := newTestBench(t)
	r.doLine("SET lock:a token PX 60000")
	for _, order := range []Request{{}, {ToUpstream: true}} {
		var failed atomic.Bool
		r.masters.failStep = func(step string) error {
			if step == "read" && !failed.Swap(true) {
				return &quorum.NoQuorumError{Masters: 3}
			}
			return nil
		}
		r.mustMove(order)
		if !failed.Load() {
			t.Errorf("%+v: the run read nothing", order)
		}
	}
}

// TestDifferentUpstream checks that a run moves nothing, in either direction and with any request,
// if another proxy has a different upstream, or does not know which server its upstream is.
func TestDifferentUpstream(t *testing.T) {
	t.Parallel()
	for _, order := range []Request{{}, {CloseForeignConns: true}, {ToUpstream: true}} {
		r := newTestBench(t)
		r.doLine("SET lock:a token PX 60000")
		if order.ToUpstream {
			r.mustMove(Request{})
		}
		at := r.masters.at.Place
		r.masters.proxies = append(r.masters.proxies, "other")
		before := r.masters.pauseReports
		for server, want := range map[string]string{
			"another":            "proxy other has a different upstream (run_id another) than this proxy (run_id ",
			quorum.UnknownServer: "proxies do not know the run_id of their upstream, so it may be a different one: other; ",
		} {
			r.masters.pauseReports = append(slices.Clone(before), quorum.PauseReport{Proxy: "other", Server: server})
			if _, err := r.move(order); err == nil || !strings.Contains(err.Error(), want) || r.masters.at.Place != at {
				t.Errorf("%+v, %s: %v, %v", order, server, err, r.masters.at)
			}
		}
	}
}
