package register

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"redlock-proxy/quorum/cell"
)

func TestRead(t *testing.T) {
	for _, test := range []struct {
		name    string
		prepare func(*fakeMasters)
		want    string // the value, or an error in brackets
		rounds  string
	}{
		{"nothing", func(*fakeMasters) {}, "", "read"},
		{"a lock", func(b *fakeMasters) { b.mustLock(b.proxy(), "me") }, "me", "read"},
		{"a leftover", func(b *fakeMasters) { b.putPlainCell("x", "a", time.Minute, 0, 1) }, "", "read"},
		{"equal values of two attempts", func(b *fakeMasters) {
			b.putPlainCell("x", "a", time.Minute, 0, 1)
			b.putPlainCell("x", "b", time.Minute, 2, 3)
		}, "", "read"},
		{"what may have a majority", func(b *fakeMasters) { b.putPlainCell("x", "a", time.Minute, 0, 1); b.setFault(replyLost, 4) },
			"(no quorum)", everyTry("read")},
		{"a removal that expires later on one master, and two are away", func(b *fakeMasters) {
			b.putAcceptedCellFor(5*time.Millisecond, "", 2, 0)
			b.setFault(replyLost, 3, 4)
		}, "", "read read"},
		{"foreign", func(b *fakeMasters) { b.putForeignCell("x", 0, 1, 2) }, "x", "read"},
		{"a blocking copy that may be a vote", func(b *fakeMasters) {
			b.putPlainCell("x", "a", time.Minute, 0,
				1)
			b.putBlockingCell("a", 2)
		}, "(no quorum)", everyTry("read")},
		{"removed", func(b *fakeMasters) {
			b.mustLock(b.proxy(), "me")
			b.noError(b.proxy().Unlock(b.Context(), "k", "me", nil))
			b.rounds = nil
		}, "", "read"},
		{"in the midst of a replacing", func(b *fakeMasters) {
			b.mustLock(b.proxy(), "me")
			b.setFaultOn("accept", requestLost, 1, 2, 3, 4)
			_, _ = b.proxy().Update(b.Context(), putChange("you"))
			b.faultOf, b.rounds = nil, nil
		}, "you", "read prepare prepare accept"},
		{"three are away", func(b *fakeMasters) { b.setFault(replyLost, 2, 3, 4) }, "(no quorum)", "read"},
		{"two do not count", func(b *fakeMasters) { b.mustLock(b.proxy(), "me"); b.setFault(voteUncounted, 3, 4) }, "me", "read"},
		{"three do not count", func(b *fakeMasters) { b.mustLock(b.proxy(), "me"); b.setFault(voteUncounted, 2, 3, 4) },
			"(no quorum)", "read"},
	} {
		b := newFakeMasters(t, 5)
		test.prepare(b)
		snapshots, err := b.proxy().Read(t.Context(), []string{"k"})
		got := "(" + outcome(err) + ")"
		if err == nil {
			got = snapshots[0].Value
		}
		if got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
		b.wantRounds(test.rounds)
	}
}

// TestReadLongValue checks that the rest of a long value comes from one master that holds it. It
// comes from all masters if that master fails or no longer holds the value, or if the head does not
// identify the value.
func TestReadLongValue(t *testing.T) {
	long, other := strings.Repeat("long", defaultHeadSize), strings.Repeat("other", defaultHeadSize)
	isWhole := func(op cell.Op) bool { read, is := op.(cell.Read); return is && read.HeadBytes == 0 }
	for _, test := range []struct {
		name    string
		prepare func(b *fakeMasters, r *Register)
		want    string
		rounds  string
	}{
		{"a lock", func(b *fakeMasters, r *Register) { b.mustLock(r, long) }, long, "read read"},
		{"replaced", func(b *fakeMasters, r *Register) {
			b.mustLock(r, "me")
			_, err := r.Update(b.Context(), putChange(long))
			b.noError(err)
		}, long, "read read"},
		{"the first master is without it", func(b *fakeMasters, r *Register) {
			b.mustLock(r,
				long)
			b.stores[0].Delete("k")
		}, long, "read read"},
		{"it is replaced between the two", func(b *fakeMasters, r *Register) {
			b.mustLock(r, long)
			b.faultOf = func(m int, op cell.Op) fault {
				if isWhole(op) {
					b.faultOf = nil
					_, err := b.proxy().Update(b.Context(), putChange(other))
					b.noError(err)
					b.rounds = b.rounds[:1]
				}
				return noFault
			}
		}, other, "read read read"},
		{"the one that holds it does not answer again", func(b *fakeMasters, r *Register) {
			b.mustLock(r, long)
			b.faultOf = func(m int, op cell.Op) fault {
				if m == 0 && isWhole(op) {
					return replyLost
				}
				return noFault
			}
		}, long, "read read read"},
		{"foreign", func(b *fakeMasters, _ *Register) { b.putForeignCell(long, 0, 1, 2) }, long, "read read"},
		{"foreign, with one head and two ends", func(b *fakeMasters, _ *Register) {
			b.putForeignCell(long+"a", 0,
				1)
			b.putForeignCell(long+"b", 2, 3)
		}, "", "read read"},
	} {
		b := newFakeMasters(t, 5)
		r := b.proxy()
		test.prepare(b, r)
		b.rounds = nil
		snapshots, err := r.Read(t.Context(), []string{"k"})
		b.noError(err)
		if got := snapshots[0].Value; got != test.want {
			t.Errorf("%s: %d bytes, %.10s…, want %d, %.10s…", test.name, len(got), got, len(test.want), test.want)
		}
		b.wantRounds(test.rounds)
	}
}

// TestRestOfAbsentCell checks that the proxy does not ask a master that reports no cell for the
// rest of a value.
func TestRestOfAbsentCell(t *testing.T) {
	l := Snapshot{Present: true, Version: string(attemptOf("a"))}
	empty := Reply{State: Counted, Answer: cell.Answer{Applied: true}}
	lock := cell.Cell{Form: cell.Plain, Attempt: attemptOf("a"), Value: cell.Value{Present: true}}
	holder := Reply{State: Counted, Answer: cell.Answer{KeyStates: []cell.KeyState{{Cell: lock}}}}
	if l.isHeldBy(empty, 0) || !l.isHeldBy(holder, 0) {
		t.Error("a reply without what is held, or with it, is taken for the other")
	}
}

// TestReadSeveralLongValues checks that one master returns several long values if it holds them
// all.
func TestReadSeveralLongValues(t *testing.T) {
	for _, away := range []string{"none", "k", "each another"} {
		b := newFakeMasters(t, 3)
		r := b.proxy()
		names := []string{"k", "l", "m"}
		want := map[string]string{}
		for i, name := range names {
			want[name] = strings.Repeat(name, 2*defaultHeadSize)
			_, err := r.Lock(b.Context(), []string{name}, TakeOptions{Tokens: []string{want[name]}, TTL: time.Minute})
			b.noError(err)
			if away == name || away == "each another" {
				b.stores[i].Delete(name)
			}
		}
		_, err := r.Lock(b.Context(), []string{"short"}, TakeOptions{Tokens: []string{"me"}, TTL: time.Minute})
		b.noError(err)
		want["short"] = "me"
		snapshots, err := r.Read(t.Context(), []string{"k", "short", "absent", "l", "m"})
		b.noError(err)
		for i, name := range []string{"k", "short", "absent", "l", "m"} {
			if snapshots[i].Value != want[name] {
				t.Errorf("without %s: %s has %d bytes, want %d", away, name, len(snapshots[i].Value), len(want[name]))
			}
		}
	}
}

// TestReadTimeLeft checks that the remaining time is the time that a majority still grants.
func TestReadTimeLeft(t *testing.T) {
	b := newFakeMasters(t, 5)
	r := b.proxy()
	for i, left := range []time.Duration{5, 1, 4, 2, 3} {
		b.putPlainCell("x", "a", left*time.Second, i)
	}
	snapshots, err := r.Read(t.Context(), []string{"k"})
	b.noError(err)
	if snapshots[0].TimeLeft != 3*time.Second {
		t.Errorf("%v left, want 3s", snapshots[0].TimeLeft)
	}
	for i := range 3 {
		b.putPlainCell("x", "a", cell.NoExpiry, i)
	}
	snapshots, err = r.Read(t.Context(), []string{"k"})
	b.noError(err)
	if snapshots[0].TimeLeft != cell.NoExpiry {
		t.Errorf("%v left, want no end", snapshots[0].TimeLeft)
	}
}

// TestUnclearTTL checks that the remaining time is unknown if masters that do not reply
// may grant more time than a majority does. A ballot determines the value all the same.
func TestUnclearTTL(t *testing.T) {
	const shortTTL, longTTL = time.Minute, time.Hour
	for _, test := range []struct {
		name          string
		timesLeft     []time.Duration
		silentMasters []int
		want          string
	}{
		{"three of five were extended", []time.Duration{shortTTL, shortTTL, longTTL, longTTL, longTTL}, nil, "1h0m0s"},
		{"and one of them is away", []time.Duration{shortTTL, shortTTL, longTTL, longTTL, longTTL}, []int{4}, "(no quorum)"},
		{"and two of them are away", []time.Duration{shortTTL, shortTTL, longTTL, longTTL, longTTL}, []int{3, 4}, "(no quorum)"},
		{"and others are away", []time.Duration{shortTTL, shortTTL, longTTL, longTTL, longTTL}, []int{0, 1}, "1h0m0s"},
		{"two of five were extended", []time.Duration{shortTTL, shortTTL, shortTTL, longTTL, longTTL}, nil, "1m0s"},
		{"one was extended, and one of the others is away", []time.Duration{shortTTL, shortTTL, shortTTL, longTTL, shortTTL}, []int{4}, "1m0s"},
		{"one was extended, and two of the others are away", []time.Duration{shortTTL, shortTTL, shortTTL, longTTL, shortTTL},
			[]int{0, 4}, "(no quorum)"},
		{"one ends never, and two are away", []time.Duration{shortTTL, shortTTL, cell.NoExpiry, shortTTL, shortTTL}, []int{3, 4},
			"(no quorum)"},
	} {
		b := newFakeMasters(t, 5)
		for i, left := range test.timesLeft {
			b.putPlainCell("x", "a", left, i)
		}
		b.setFault(replyLost, test.silentMasters...)
		snapshots, err := b.proxy().Read(t.Context(), []string{"k"})
		got := "(" + outcome(err) + ")"
		if err == nil {
			got = snapshots[0].TimeLeft.String()
		}
		if got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
		var snapshot Snapshot
		_, err = b.proxy().Update(t.Context(), readChange(&snapshot))
		b.noError(err)
		isKnown := test.want != "(no quorum)"
		if snapshot.TimeLeftUnknown == isKnown || isKnown && snapshot.TimeLeft.String() != test.want || snapshot.Value != "x" {
			t.Errorf("%s: a ballot sees %+v, want %s", test.name, snapshot, test.want)
		}
		_, err = b.proxy().Update(t.Context(), Change{Key: "k", Run: func(l Snapshot) (Decision, error) {
			if l.TimeLeftUnknown {
				return Decision{}, ErrTTLUnknown
			}
			return Decision{}, nil
		}})
		if isKnown := test.want != "(no quorum)"; (err == nil) != isKnown || !isKnown && outcome(err) != "no quorum" {
			t.Errorf("%s: a ballot that needs the time: %v", test.name, err)
		}
	}
}

// TestVersions checks that versions distinguish each state of a key from all other states.
func TestVersions(t *testing.T) {
	b := newFakeMasters(t, 3)
	r := b.proxy()
	seen := map[string]string{}
	version := func(previousVersion string) {
		t.Helper()
		snapshots, err := r.Read(t.Context(), []string{"k"})
		b.noError(err)
		if before, repeated := seen[snapshots[0].Version]; repeated {
			t.Errorf("%s is as %s", previousVersion, before)
		}
		seen[snapshots[0].Version] = previousVersion
	}
	version("nothing")
	b.mustLock(r, "me")
	version("a lock")
	before, err := r.Read(t.Context(), []string{"k"})
	b.noError(err)
	_, err = r.Extend(t.Context(), "k", "me", time.Minute)
	b.noError(err)
	_, err = b.proxy().Update(t.Context(), readChange(nil))
	b.noError(err)
	if now, _ := r.Read(t.Context(), []string{"k"}); now[0].Version != before[0].Version {
		t.Error("extended and read, it has another version")
	}
	// A read settles a half-replaced key, and keeps the version.
	b.setFaultOn("accept", requestLost, 1, 2)
	b.onPause = func() { b.onPause, b.faultOf = nil, nil }
	out, err := r.Update(t.Context(), putChange("half"))
	b.noError(err)
	if now, _ := r.Read(t.Context(), []string{"k"}); now[0].Version != out.Version {
		t.Error("settled, it has another version")
	}
	version("half replaced")
	for _, value := range []string{"you", "me", "me"} {
		out, err := r.Update(t.Context(), putChange(value))
		b.noError(err)
		if now, _ := r.Read(t.Context(), []string{"k"}); now[0].Version != out.Version {
			t.Errorf("%s has another version than was told", value)
		}
		version("replaced by " + value)
	}
	b.noError(r.Unlock(t.Context(), "k", "me", nil))
	if now, _ := r.Read(t.Context(), []string{"k"}); seen[now[0].Version] != "nothing" {
		t.Error("removed by ballot, it is not as nothing")
	}
	b.advance(removalTTL)
	b.mustLock(r, "me")
	version("the same token again")
	for _, s := range b.stores {
		s.Delete("k")
	}
	b.putForeignCell("me", 0, 1, 2)
	version("the same, foreign")
}

func TestReadCanceled(t *testing.T) {
	b := newFakeMasters(t, 3)
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("left")
	cancel(cause)
	if _, err := b.proxy().Read(ctx, []string{"k"}); !errors.Is(err, cause) {
		t.Error(err)
	}
}
