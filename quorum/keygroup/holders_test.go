package keygroup

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"redlock-proxy/quorum/register"
)

func mustOpenHolders(t *testing.T, value string, left time.Duration) *Holders {
	t.Helper()
	h, err := OpenHolders(register.Snapshot{Present: value != "", Value: value, Version: "cell", LongestTimeLeft: left, ShortestTimeLeft: left, TimeLeft: left})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// FuzzOpenHolders checks that no value crashes OpenHolders, and that a changed lock is readable.
func FuzzOpenHolders(f *testing.F) {
	f.Add(LoneHolder("a", Unlimited))
	f.Add(LoneHolder("", 3))
	f.Add(lonePrefix)
	f.Add(holdersPrefix + "\x00\x02ha\x00\x01\x015")
	f.Add(encode(holdersPrefix, []member{{"ha", "2", "v", 0}, {"hb", "2", "v", NoExpiry}, {"wp", "", "v", time.Second}}))
	f.Fuzz(func(t *testing.T, value string) {
		l := register.Snapshot{Present: true, Value: value, Version: "cell", LongestTimeLeft: time.Minute, ShortestTimeLeft: time.Minute, TimeLeft: time.Minute}
		h, err := OpenHolders(l)
		if err != nil {
			if !errors.Is(err, ErrUnreadable) {
				t.Fatal(err)
			}
			return
		}
		if h.exclusive {
			return
		}
		before := h.Tokens()
		if err := h.Join("another token", cmp.Or(h.Slots(), Unlimited), time.Second); err != nil {
			return
		}
		d, err := h.Encode("w")
		if err != nil {
			t.Fatal(err)
		}
		left := d.TTL
		if d.KeepTTL {
			left = time.Minute + d.Shift
		}
		if after := mustOpenHolders(t, d.Value, left); len(after.Tokens()) != len(before)+1 {
			t.Errorf("%q joined by one are %q", before, after.Tokens())
		}
	})
}

// TestHoldersBytes checks the encoding, which all later versions must read.
func TestHoldersBytes(t *testing.T) {
	if got, want := LoneHolder("me", 3), "\x00redlock:o\x06me"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := LoneHolder("me", Unlimited), "\x00redlock:o\x01me"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	h := mustOpenHolders(t, LoneHolder("me", 3), time.Second)
	if err := h.Join("you", 3, 2*time.Second); err != nil {
		t.Fatal(err)
	}
	d, err := h.Encode("w")
	if want := "\x00redlock:m\x00\x03hme\x04cell\xa1\x1f\x013\x04hyou\x01w\xb9\x17\x013"; d.Value != want || err != nil || d.TTL != 5*time.Second {
		t.Errorf("%q %v, want %q, %v", d.Value, d.TTL, want, err)
	}
}

// TestFreeSlots checks how many waiting clients may get a lock.
func TestFreeSlots(t *testing.T) {
	for _, test := range []struct {
		name  string
		value string
		want  int
	}{
		{"a free lock", "", Unlimited},
		{"an exclusive lock", "token", 0},
		{"a reader", LoneHolder("a", Unlimited), Unlimited},
		{"one of three", LoneHolder("a", 3), 2},
		{"two of two", encode(holdersPrefix, []member{{"ha", "2", "v", 0}, {"hb", "2", "v", 0}}), 0},
		{"a writer waits for a reader", encode(holdersPrefix, []member{{"ha", "-1", "v", 0}, {"wp", "", "v", 0}}), 0},
		{"a writer waits for slots", encode(holdersPrefix, []member{{"ha", "3", "v", 0}, {"wp", "", "v", 0}}), 0},
		{"only a writer is left", encode(holdersPrefix, []member{{"wp", "", "v", 0}}), 1},
	} {
		if got := mustOpenHolders(t, test.value, time.Minute).FreeSlots(); got != test.want {
			t.Errorf("%s: %d, want %d", test.name, got, test.want)
		}
	}
}

// TestJoin checks when a client may join the holders of a lock.
func TestJoin(t *testing.T) {
	many := encode(holdersPrefix, []member{{"ha", "2", "v", 0}, {"hb", "2", "v", time.Second}})
	waited := encode(holdersPrefix, []member{{"ha", "-1", "v", 0}, {"wp", "", "v", time.Second}})
	for _, test := range []struct {
		name, value string
		left        time.Duration
		token       string
		slots       int
		want        string
	}{
		{"a free lock", "", 0, "x", 2, ""},
		{"an exclusive lock", "token", time.Minute, "x", 2, "held by another client"},
		{"a reader with a reader", LoneHolder("a", Unlimited), time.Minute, "x", Unlimited, ""},
		{"the same token", LoneHolder("a", Unlimited), time.Minute, "a", Unlimited, "held by another client"},
		{"the second of two", LoneHolder("a", 2), time.Minute, "x", 2, ""},
		{"the third of two", many, time.Minute, "x", 2, "held by another client"},
		{"one of two has expired", many, time.Second, "x", 2, ""},
		{"another number", LoneHolder("a", 2), time.Minute, "x", 3, "the lock is held with SLOTS 2, and this command requests SLOTS 3; " +
			"use the same for all clients of a lock"},
		{"a reader of slots", LoneHolder("a", 2), time.Minute, "x", Unlimited, "the lock is held with SLOTS 2, and this command " +
			"requests SHARED; use the same for all clients of a lock"},
		{"a writer waits", waited, time.Minute, "x", Unlimited, "held by another client"},
		{"the writer waits no longer", waited, time.Second, "x", Unlimited, ""},
	} {
		err := mustOpenHolders(t, test.value, test.left).Join(test.token, test.slots, time.Second)
		if got := fmt.Sprint(err); got != test.want && (err != nil || test.want != "") {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
}

// TestUntilFree checks for how long a lock is unavailable.
func TestUntilFree(t *testing.T) {
	many := encode(holdersPrefix, []member{{"ha", "2", "v", 5 * time.Second}, {"hb", "2", "v", NoExpiry}, {"hc", "2", "v", 0}})
	waited := encode(holdersPrefix, []member{{"ha", "-1", "v", 5 * time.Second}, {"wp", "", "v", 8 * time.Second}})
	for _, test := range []struct {
		value string
		slots int
		want  time.Duration
	}{
		{"", 0, 0}, {"", 2, 0}, {"token", 2, 10 * time.Second},
		{LoneHolder("a", 2), 0, 10 * time.Second}, {LoneHolder("a", 2), 2, 0}, {LoneHolder("a", 1), 1, 10 * time.Second},
		{many, 0, NoExpiry}, {many, 2, 10 * time.Second}, {many, 3, 5 * time.Second}, {many, 4, 0}, {many, 1, NoExpiry},
		{waited, 0, 5 * time.Second}, {waited, Unlimited, 2 * time.Second},
	} {
		if got := mustOpenHolders(t, test.value, 10*time.Second).UntilFree(test.slots); got != test.want {
			t.Errorf("%q for %d slots: %v, want %v", test.value, test.slots, got, test.want)
		}
	}
}

// TestLoneHolder checks that the last holder is stored without expiry only under a new version.
func TestLoneHolder(t *testing.T) {
	h := mustOpenHolders(t, encode(holdersPrefix, []member{{"ha", "2", "v", time.Second}, {"hb", "2", "v", 2 * time.Second}}), time.Minute)
	if err := h.Leave("b"); err != nil {
		t.Fatal(err)
	}
	d, err := h.Encode("w")
	if err != nil || !strings.HasPrefix(d.Value, holdersPrefix) || !d.KeepTTL {
		t.Errorf("%+v, %v", d, err)
	}
	left, err := h.Extend("a", time.Second) // the holder has more time left
	if err != nil || left != 59*time.Second {
		t.Errorf("%v, %v", left, err)
	}
	if d, err = h.Encode("w"); err != nil || d.Value != LoneHolder("a", 2) || !d.KeepTTL || d.Shift != -time.Second {
		t.Errorf("%+v, %v", d, err)
	}
	if err := h.Leave("a"); err != nil {
		t.Fatal(err)
	}
	if err := h.Leave("a"); !errors.Is(err, register.ErrNotHeld) {
		t.Error(err)
	}
	if _, err := h.Extend("a", time.Second); !errors.Is(err, register.ErrNotHeld) {
		t.Error(err)
	}
	if d, err = h.Encode("w"); err != nil || d.Action != register.Remove {
		t.Errorf("%+v, %v", d, err)
	}
}

// TestExtendAmongHolders extends a holder again and again while its cell ends later on one master
// than on another. The holder ends no later for that.
func TestExtendAmongHolders(t *testing.T) {
	const ttl, difference, pause = 1000 * ms, 300 * ms, 250 * ms
	value := encode(holdersPrefix, []member{{"ha", "2", "v", 0}, {"hb", "2", "v", 0}})
	ends := time.Minute // of the cell that ends first
	for i := range time.Duration(40) {
		now := i * pause
		h, err := OpenHolders(register.Snapshot{
			Present: true, Value: value, Version: "v",
			TimeLeft: ends - now, ShortestTimeLeft: ends - now, LongestTimeLeft: ends + difference - now,
		})
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			h.Put("ha", "2", ttl)
		} else if left, err := h.Extend("a", ttl); err != nil || left != ttl {
			t.Fatalf("EXTEND %d: %v, %v", i, left, err)
		}
		d, err := h.Encode("v")
		if err != nil || !d.KeepTTL {
			t.Fatalf("%+v, %v", d, err)
		}
		value, ends = d.Value, ends+d.Shift
	}
}

const simulatedSlots = 3

// editHolders lets clients join, leave and extend, and checks their number.
func (w *simulation) editHolders(b *Group, from, to int64) { w.editSlots(b, from, to, simulatedSlots) }

func (w *simulation) editSlots(b *Group, from, to int64, slots int) {
	h := &Holders{Group: b}
	if err := h.countMembers(); err != nil {
		w.t.Fatal(err)
	}
	for range 1 + w.random.IntN(2) {
		token := string(rune('a' + w.random.IntN(6)))
		name := holderMember + token
		ttl := 1 + w.random.Int64N(1<<(4+w.random.IntN(14)))
		left := time.Duration(ttl) * ms
		var err error
		switch choice := w.random.IntN(8); {
		case choice == 0:
			if err = h.Leave(token); err == nil {
				delete(w.validityEnds, name)
			}
			continue
		case choice < 3:
			left, err = h.Extend(token, left)
		default:
			if err = h.Join(token, slots, left); err == nil && w.relying(to) >= simulatedSlots {
				w.report("%q joins %d holders", token, w.relying(to))
			}
		}
		if err != nil {
			continue
		}
		// An earlier, longer lease keeps its end, by the clock of the master that promised last.
		w.values[name] = fmt.Sprint(slots)
		w.validityEnds[name] = max(from+ttl, w.validityEnds[name])
		w.latestExpiries[name] = max(to+left.Milliseconds()+maxExpiryDifference, w.latestExpiries[name])
	}
}

// relying returns the number of holders that rely on the lock.
func (w *simulation) relying(at int64) (n int) {
	for _, until := range w.validityEnds {
		if until > at {
			n++
		}
	}
	return n
}

// simulateHolders runs random changes of the holders of a lock, and returns the first violation.
func simulateHolders(t *testing.T, seed uint64, s simulated) (violation string) {
	s.report = func(format string, args ...any) {
		if violation == "" {
			violation = fmt.Sprintf(format, args...)
		}
	}
	s.open = func(f register.Snapshot) (*Group, error) {
		h, err := OpenHolders(f)
		if err != nil {
			return nil, err
		}
		return h.Group, nil
	}
	if s.edit == nil {
		s.edit = (*simulation).editHolders
	}
	w := &simulation{
		t: t, random: rand.New(rand.NewPCG(11, seed)), masters: make([]master, 3), now: 1000,
		validityEnds: map[string]int64{}, latestExpiries: map[string]int64{}, values: map[string]string{}, simulated: s,
	}
	w.run(120)
	return violation
}

// TestHoldersExpireInTime makes random changes of the holders of a lock, as
// TestExpiryAfterRandomChanges does for keys. There are never more holders than slots, and none
// expires before its client stops relying on it.
func TestHoldersExpireInTime(t *testing.T) {
	for seed := range uint64(300) {
		if violation := simulateHolders(t, seed, simulated{}); violation != "" {
			t.Fatalf("seed %d: %s", seed, violation)
		}
	}
}

// TestHolderRulesAreNeeded checks that the simulation finds a violation in each variant without one
// of the rules.
func TestHolderRulesAreNeeded(t *testing.T) {
	for name, variant := range map[string]simulated{
		"one slot too many": {edit: func(w *simulation, b *Group, from, to int64) { w.editSlots(b, from, to, simulatedSlots+1) }},
		"masters do not shift": {accept: func(d register.Decision) register.Decision {
			d.Shift = 0
			return d
		}},
		"a new expiry counts from the cell that expires last": {read: func(f register.Snapshot) register.Snapshot {
			f.ShortestTimeLeft = f.LongestTimeLeft
			return f
		}},
	} {
		found := ""
		for seed := uint64(0); seed < 300 && found == ""; seed++ {
			found = simulateHolders(t, seed, variant)
		}
		if found == "" {
			t.Errorf("%s: no violation", name)
		} else {
			t.Logf("%s: %s", name, found)
		}
	}
}
