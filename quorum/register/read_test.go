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
		prepare func(*bench)
		want    string // the value, or the outcome of an error in brackets
		rounds  string
	}{
		{"nothing", func(*bench) {}, "", "read"},
		{"a lock", func(b *bench) { b.lock(b.proxy(), "me") }, "me", "read"},
		{"a leftover", func(b *bench) { b.plain("x", "a", time.Minute, 0, 1) }, "", "read"},
		{"equal values of two attempts", func(b *bench) { b.plain("x", "a", time.Minute, 0, 1); b.plain("x", "b", time.Minute, 2, 3) }, "", "read"},
		{"what may have a majority", func(b *bench) { b.plain("x", "a", time.Minute, 0, 1); b.at(lost, 4) }, "(no quorum)", "read"},
		{"a removal that ends at one later than at others, and two are away", func(b *bench) { b.acceptedFor(5*time.Millisecond, "", 2, 0); b.at(lost, 3, 4) }, "", "read read"},
		{"foreign", func(b *bench) { b.foreign("x", 0, 1, 2) }, "x", "read"},
		{"a blocking copy that may be a vote", func(b *bench) { b.plain("x", "a", time.Minute, 0, 1); b.blocking("a", 2) }, "(no quorum)", "read"},
		{"removed", func(b *bench) {
			b.lock(b.proxy(), "me")
			b.sure(b.proxy().Unlock(b.Context(), "k", "me", nil))
			b.rounds = nil
		}, "", "read"},
		{"in the midst of a replacing", func(b *bench) {
			b.lock(b.proxy(), "me")
			b.of("accept", unsent, 1, 2, 3, 4)
			_, _ = b.proxy().Update(b.Context(), put("you"))
			b.fate, b.rounds = nil, nil
		}, "you", "read prepare prepare accept"},
		{"three are away", func(b *bench) { b.at(lost, 2, 3, 4) }, "(no quorum)", "read"},
		{"two do not count", func(b *bench) { b.lock(b.proxy(), "me"); b.at(outside, 3, 4) }, "me", "read"},
		{"three do not count", func(b *bench) { b.lock(b.proxy(), "me"); b.at(outside, 2, 3, 4) }, "(no quorum)", "read"},
	} {
		b := newBench(t, 5)
		test.prepare(b)
		looks, err := b.proxy().Read(t.Context(), []string{"k"})
		got := "(" + outcome(err) + ")"
		if err == nil {
			got = looks[0].Value
		}
		if got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
		b.wantRounds(test.rounds)
	}
}

// TestReadLong: of what is long, one master that holds it is asked for what is behind its head; all
// are asked for the whole where that one does not hold it any more, does not answer, or where the
// head does not say which value it is.
func TestReadLong(t *testing.T) {
	long, other := strings.Repeat("long", headSize), strings.Repeat("other", headSize)
	isWhole := func(op cell.Op) bool { read, is := op.(cell.Read); return is && read.Heads == 0 }
	for _, test := range []struct {
		name    string
		prepare func(b *bench, r *Register)
		want    string
		rounds  string
	}{
		{"a lock", func(b *bench, r *Register) { b.lock(r, long) }, long, "read read"},
		{"replaced", func(b *bench, r *Register) {
			b.lock(r, "me")
			_, err := r.Update(b.Context(), put(long))
			b.sure(err)
		}, long, "read read"},
		{"the first master is without it", func(b *bench, r *Register) { b.lock(r, long); b.stores[0].Delete("k") }, long, "read read"},
		{"it is replaced between the two", func(b *bench, r *Register) {
			b.lock(r, long)
			b.fate = func(m int, op cell.Op) fate {
				if isWhole(op) {
					b.fate = nil
					_, err := b.proxy().Update(b.Context(), put(other))
					b.sure(err)
					b.rounds = b.rounds[:1]
				}
				return done
			}
		}, other, "read read read"},
		{"the one that holds it does not answer again", func(b *bench, r *Register) {
			b.lock(r, long)
			b.fate = func(m int, op cell.Op) fate {
				if m == 0 && isWhole(op) {
					return lost
				}
				return done
			}
		}, long, "read read read"},
		{"foreign", func(b *bench, _ *Register) { b.foreign(long, 0, 1, 2) }, long, "read read"},
		{"foreign, with one head and two ends", func(b *bench, _ *Register) { b.foreign(long+"a", 0, 1); b.foreign(long+"b", 2, 3) }, "", "read read"},
	} {
		b := newBench(t, 5)
		r := b.proxy()
		test.prepare(b, r)
		b.rounds = nil
		looks, err := r.Read(t.Context(), []string{"k"})
		b.sure(err)
		if got := looks[0].Value; got != test.want {
			t.Errorf("%s: %d bytes, %.10s…, want %d, %.10s…", test.name, len(got), got, len(test.want), test.want)
		}
		b.wantRounds(test.rounds)
	}
}

// A master that does not say what it holds is not asked for the rest, and gives none.
func TestRestOfNothing(t *testing.T) {
	l, silent := Look{Present: true, Version: string(attemptOf("a"))}, Reply{State: Counted, Answer: cell.Answer{Did: true}}
	if l.isOf(silent, 0) || !l.isOf(Reply{State: Counted, Answer: cell.Answer{Found: []cell.Found{{Cell: cell.Cell{Form: cell.Plain, Attempt: attemptOf("a"), Value: cell.Value{Present: true}}}}}}, 0) {
		t.Error("a reply without what is held, or with it, is taken for the other")
	}
}

// Several long values come from one master; if none holds all of them, from all.
func TestReadSeveralLong(t *testing.T) {
	for _, away := range []string{"none", "k", "each another"} {
		b := newBench(t, 3)
		r := b.proxy()
		names := []string{"k", "l", "m"}
		want := map[string]string{}
		for i, name := range names {
			want[name] = strings.Repeat(name, 2*headSize)
			_, err := r.Lock(b.Context(), []string{name}, Terms{Tokens: []string{want[name]}, TTL: time.Minute})
			b.sure(err)
			if away == name || away == "each another" {
				b.stores[i].Delete(name)
			}
		}
		_, err := r.Lock(b.Context(), []string{"short"}, Terms{Tokens: []string{"me"}, TTL: time.Minute})
		b.sure(err)
		want["short"] = "me"
		looks, err := r.Read(t.Context(), []string{"k", "short", "absent", "l", "m"})
		b.sure(err)
		for i, name := range []string{"k", "short", "absent", "l", "m"} {
			if looks[i].Value != want[name] {
				t.Errorf("without %s: %s has %d bytes, want %d", away, name, len(looks[i].Value), len(want[name]))
			}
		}
	}
}

// The remaining time is what a majority still grants.
func TestReadTime(t *testing.T) {
	b := newBench(t, 5)
	r := b.proxy()
	for i, left := range []time.Duration{5, 1, 4, 2, 3} {
		b.plain("x", "a", left*time.Second, i)
	}
	looks, err := r.Read(t.Context(), []string{"k"})
	b.sure(err)
	if looks[0].Left != 3*time.Second {
		t.Errorf("%v left, want 3s", looks[0].Left)
	}
	for i := range 3 {
		b.plain("x", "a", cell.Endless, i)
	}
	looks, err = r.Read(t.Context(), []string{"k"})
	b.sure(err)
	if looks[0].Left != cell.Endless {
		t.Errorf("%v left, want no end", looks[0].Left)
	}
}

// TestTimeIsNotGuessed: where masters that do not answer may grant more time than a majority of the
// others, the time is not known. A ballot knows the value, and says so of the time.
func TestTimeIsNotGuessed(t *testing.T) {
	const short, long = time.Minute, time.Hour
	for _, test := range []struct {
		name   string
		lefts  []time.Duration
		silent []int
		want   string
	}{
		{"three of five were extended", []time.Duration{short, short, long, long, long}, nil, "1h0m0s"},
		{"and one of them is away", []time.Duration{short, short, long, long, long}, []int{4}, "(no quorum)"},
		{"and two of them are away", []time.Duration{short, short, long, long, long}, []int{3, 4}, "(no quorum)"},
		{"and others are away", []time.Duration{short, short, long, long, long}, []int{0, 1}, "1h0m0s"},
		{"two of five were extended", []time.Duration{short, short, short, long, long}, nil, "1m0s"},
		{"one was extended, and one of the others is away", []time.Duration{short, short, short, long, short}, []int{4}, "1m0s"},
		{"one was extended, and two of the others are away", []time.Duration{short, short, short, long, short}, []int{0, 4}, "(no quorum)"},
		{"one ends never, and two are away", []time.Duration{short, short, cell.Endless, short, short}, []int{3, 4}, "(no quorum)"},
	} {
		b := newBench(t, 5)
		for i, left := range test.lefts {
			b.plain("x", "a", left, i)
		}
		b.at(lost, test.silent...)
		looks, err := b.proxy().Read(t.Context(), []string{"k"})
		got := "(" + outcome(err) + ")"
		if err == nil {
			got = looks[0].Left.String()
		}
		if got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
		var seen Look
		_, err = b.proxy().Update(t.Context(), Change{Key: "k", Run: func(l Look) (Decision, error) { seen = l; return Decision{}, nil }})
		b.sure(err)
		if isKnown := test.want != "(no quorum)"; seen.Unknown == isKnown || isKnown && seen.Left.String() != test.want || seen.Value != "x" {
			t.Errorf("%s: a ballot sees %+v, want %s", test.name, seen, test.want)
		}
		_, err = b.proxy().Update(t.Context(), Change{Key: "k", Run: func(l Look) (Decision, error) {
			if l.Unknown {
				return Decision{}, ErrNeedsLeft
			}
			return Decision{}, nil
		}})
		if isKnown := test.want != "(no quorum)"; (err == nil) != isKnown || !isKnown && outcome(err) != "no quorum" {
			t.Errorf("%s: a ballot that needs the time: %v", test.name, err)
		}
	}
}

// Versions tell each state of a key from all others.
func TestVersions(t *testing.T) {
	b := newBench(t, 3)
	r := b.proxy()
	seen := map[string]string{}
	version := func(after string) {
		t.Helper()
		looks, err := r.Read(t.Context(), []string{"k"})
		b.sure(err)
		if before, twice := seen[looks[0].Version]; twice {
			t.Errorf("%s is as %s", after, before)
		}
		seen[looks[0].Version] = after
	}
	version("nothing")
	b.lock(r, "me")
	version("a lock")
	same, err := r.Read(t.Context(), []string{"k"})
	b.sure(err)
	_, err = r.Extend(t.Context(), "k", "me", time.Minute)
	b.sure(err)
	_, err = b.proxy().Update(t.Context(), look(nil))
	b.sure(err)
	if now, _ := r.Read(t.Context(), []string{"k"}); now[0].Version != same[0].Version {
		t.Error("extended and looked at, it has another version")
	}
	// A reader that finds it half replaced settles that, under the same version.
	b.of("accept", unsent, 1, 2)
	b.pausing = func() { b.pausing, b.fate = nil, nil }
	out, err := r.Update(t.Context(), put("half"))
	b.sure(err)
	if now, _ := r.Read(t.Context(), []string{"k"}); now[0].Version != out.Version {
		t.Error("settled, it has another version")
	}
	version("half replaced")
	for _, value := range []string{"you", "me", "me"} {
		out, err := r.Update(t.Context(), put(value))
		b.sure(err)
		if now, _ := r.Read(t.Context(), []string{"k"}); now[0].Version != out.Version {
			t.Errorf("%s has another version than was told", value)
		}
		version("replaced by " + value)
	}
	b.sure(r.Unlock(t.Context(), "k", "me", nil))
	if now, _ := r.Read(t.Context(), []string{"k"}); seen[now[0].Version] != "nothing" {
		t.Error("removed by ballot, it is not as nothing")
	}
	b.pass(removedFor)
	b.lock(r, "me")
	version("the same token again")
	for _, s := range b.stores {
		s.Delete("k")
	}
	b.foreign("me", 0, 1, 2)
	version("the same, foreign")
}

func TestReadWhoLeaves(t *testing.T) {
	b := newBench(t, 3)
	ctx, leave := context.WithCancelCause(t.Context())
	left := errors.New("left")
	leave(left)
	if _, err := b.proxy().Read(ctx, []string{"k"}); !errors.Is(err, left) {
		t.Error(err)
	}
}
