package keygroup

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"redlock-proxy/quorum/register"
)

const ms = time.Millisecond

// FuzzDecode checks that encoding a decoded keygroup returns the same keygroup.
func FuzzDecode(f *testing.F) {
	f.Add(encode(prefix, []member{{"a", "v", "1", NoExpiry}}))
	f.Add(encode(prefix, []member{{"", "", "", 0}, {"b", "\x00redlock:h\x01a\x01b", "2", 5 * time.Second}}))
	f.Add(prefix)
	f.Add(prefix + "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff")
	f.Fuzz(func(t *testing.T, text string) {
		if !IsGroup(text) {
			t.Skip()
		}
		members, err := decode(text)
		if err != nil {
			if !errors.Is(err, ErrUnreadable) {
				t.Fatal(err)
			}
			return
		}
		if reencoded := encode(prefix, members); !strings.HasSuffix(text, reencoded[len(prefix)+1:]) {
			t.Errorf("%q is read as %+v, which is %q", text, members, reencoded)
		}
		for i, m := range members {
			if i > 0 && members[i-1].name >= m.name || m.expiryOffset < NoExpiry ||
				m.expiryOffset%ms != 0 && m.expiryOffset != NoExpiry {
				t.Errorf("%q: %+v", text, members)
			}
		}
	})
}

// TestEncodedBytes checks the encoding, which all later versions must read.
func TestEncodedBytes(t *testing.T) {
	got := encode(prefix, []member{{"T", "me", "v1", 200 * ms}, {"q:{T}", "", "", NoExpiry}})
	if want := "\x00redlock:b\x00\x01T\x02v1\xc9\x01\x02me\x05q:{T}\x00\x00\x00"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	earlier, err := decode(strings.Replace(got, "\x00\x01T", "\x01g\x01T", 1))
	if now, _ := decode(got); err != nil || !slices.Equal(earlier, now) {
		t.Errorf("what earlier versions wrote is read as %+v, %v", earlier, err)
	}
}

func mustOpen(t *testing.T, w register.Decision, timeLeft time.Duration) *Group {
	t.Helper()
	b, err := Open("T", register.Snapshot{Present: true, Value: w.Value, Version: "cell", LongestTimeLeft: timeLeft, ShortestTimeLeft: timeLeft})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func describe(b *Group) string {
	var texts []string
	for _, name := range b.Names() {
		e := b.Snapshot(name)
		texts = append(texts, fmt.Sprintf("%s=%s/%v@%s", name, e.Value, e.TimeLeft, e.Version))
	}
	return strings.Join(texts, " ")
}

func mustEncode(t *testing.T, b *Group, version string) register.Decision {
	t.Helper()
	w, err := b.Encode(version)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func longestNewTTL(b *Group) string { return strings.TrimSpace(fmt.Sprintln(b.LongestNewTTL())) }

// TestExpiryAfterKeyChanges checks that all keys keep their expiry while other keys come and go.
// The key of the cell's name is a plain value while it is the only key.
func TestExpiryAfterKeyChanges(t *testing.T) {
	own := mustOpen(t, register.Decision{Value: "me"}, 30*time.Second)
	if own.IsGroup() || describe(own) != "T=me/30s@cell" {
		t.Fatal(describe(own))
	}
	own.Put("q:{T}", "queue", NoExpiry)
	w := mustEncode(t, own, "w1")
	if w.Action != register.Put || w.KeepTTL || !w.Shared || w.TTL < 90*year || longestNewTTL(own) != "-1ns true" {
		t.Fatalf("%+v", w)
	}
	left := w.TTL - 10*time.Second // ten seconds later
	both := mustOpen(t, w, left)
	if want := "T=me/20s@cell q:{T}=queue/-1ns@w1"; describe(both) != want || !both.IsGroup() {
		t.Fatalf("%s, want %s", describe(both), want)
	}
	both.Put("x:{T}", "x", 5*time.Second)
	w = mustEncode(t, both, "w2")
	if w.Shift != 0 || !w.KeepTTL || longestNewTTL(both) != "5s true" {
		t.Fatalf("%+v", w)
	}
	three := mustOpen(t, w, left)
	if want := "T=me/20s@cell q:{T}=queue/-1ns@w1 x:{T}=x/5s@w2"; describe(three) != want {
		t.Fatalf("%s, want %s", describe(three), want)
	}
	three.Remove("q:{T}")
	w = mustEncode(t, three, "w3")
	if w.Shift > -90*year || !w.KeepTTL || longestNewTTL(three) != "0s false" {
		t.Fatalf("%+v", w)
	}
	left += w.Shift
	later := mustOpen(t, w, left-6*time.Second) // x:{T} has expired by then
	if want := "T=me/14s@cell"; describe(later) != want {
		t.Fatalf("%s, want %s", describe(later), want)
	}
	later.Replace("T", "mine")
	w = mustEncode(t, later, "w4")
	if w.Value != "mine" || !w.KeepTTL || left-6*time.Second+w.Shift != 14*time.Second {
		t.Fatalf("%+v", w)
	}
	alone := mustOpen(t, w, left-6*time.Second+w.Shift)
	if alone.IsGroup() || describe(alone) != "T=mine/14s@cell" {
		t.Error(describe(alone))
	}
}

// TestEncodeDecisions checks the effect of Encode on the cell.
func TestEncodeDecisions(t *testing.T) {
	for _, test := range []struct {
		name string
		do   func(b *Group)
		want register.Decision
	}{
		{"nothing", func(*Group) {}, register.Decision{}},
		{"one that is absent goes", func(b *Group) { b.Remove("x:{T}") }, register.Decision{}},
		{"its own is replaced", func(b *Group) { b.Put("T", "you", 7*time.Second) },
			register.Decision{Action: register.Put, Value: "you", TTL: 7 * time.Second}},
		{"its own keeps its time", func(b *Group) { b.Replace("T", "you") },
			register.Decision{Action: register.Put, Value: "you", KeepTTL: true}},
		{"its own goes", func(b *Group) { b.Remove("T") }, register.Decision{Action: register.Remove}},
		{"another comes and goes", func(b *Group) { b.Put("x:{T}", "x", ms); b.Remove("x:{T}") },
			register.Decision{Action: register.Put, Value: "me", KeepTTL: true}},
	} {
		b := mustOpen(t, register.Decision{Value: "me"}, time.Second)
		test.do(b)
		if got := mustEncode(t, b, "w"); got != test.want {
			t.Errorf("%s: %+v, want %+v", test.name, got, test.want)
		}
		if lease := longestNewTTL(b); (lease == "7s true") != (test.want.TTL > 0) {
			t.Errorf("%s: a lease of %s", test.name, lease)
		}
	}
	empty, err := Open("T", register.Snapshot{})
	if err != nil {
		t.Fatal(err)
	}
	empty.Remove("T")
	if w := mustEncode(t, empty, "w"); w.Action != register.NoChange {
		t.Errorf("%+v", w)
	}
	empty.Put("x:{T}", "x", time.Second)
	if w := mustEncode(t, empty, "w"); w.Action != register.Put || w.KeepTTL || w.TTL < 2*time.Second || !IsGroup(w.Value) {
		t.Errorf("%+v", w)
	}
}

// TestRefusals checks that Open and Encode refuse contents that cannot be decoded or encoded.
func TestRefusals(t *testing.T) {
	unreadable := register.Snapshot{Present: true, Value: prefix + "x", LongestTimeLeft: ms}
	if _, err := Open("T", unreadable); !errors.Is(err, ErrUnreadable) {
		t.Error(err)
	}
	one := encode(prefix, []member{{"a", "", "", 0}})
	timeless := register.Snapshot{Present: true, Value: one, TimeLeftUnknown: true}
	if _, err := Open("T", timeless); !errors.Is(err, register.ErrTTLUnknown) {
		t.Error(err)
	}
	foreign := register.Snapshot{Present: true, Value: one, Foreign: true, LongestTimeLeft: ms, ShortestTimeLeft: ms}
	if b, err := Open("T", foreign); err != nil || b.Snapshot("a").Present || b.Snapshot("T").Value != foreign.Value {
		t.Error("what a client wrote is taken for a keygroup")
	}
	unknown, err := Open("T", register.Snapshot{Present: true, Value: "me", TimeLeftUnknown: true})
	if err != nil || !unknown.Snapshot("T").TimeLeftUnknown {
		t.Fatal(err)
	}
	unknown.Put("x:{T}", "x", time.Second)
	if _, err := unknown.Encode("w"); !errors.Is(err, register.ErrTTLUnknown) {
		t.Error(err)
	}
	unknown.Put("T", "you", time.Second) // nothing depends on the previous expiry
	if w, err := unknown.Encode("w"); err != nil || w.KeepTTL {
		t.Errorf("%+v, %v", w, err)
	}
	unknown.Put("x:{T}", strings.Repeat("x", MaxBytes), time.Second)
	if _, err := unknown.Encode("w"); !errors.Is(err, ErrTooLarge) {
		t.Error(err)
	}
}

// master holds one cell. Its times are in milliseconds of its own clock.
type master struct {
	text    string
	expiry  int64
	version int // of the value; 0 means none
	removed bool
}

// simulation holds the masters, and the times until which the holders rely on their keys.
type simulation struct {
	t       *testing.T
	random  *rand.Rand
	masters []master
	now     int64
	version int
	// validityEnds holds the time at which each key's holder stops relying on the key, or noExpiry.
	// latestExpiries holds the time by which each key must have expired.
	validityEnds, latestExpiries map[string]int64
	values                       map[string]string
	simulated
}

// simulated describes the members of a simulated cell.
type simulated struct {
	open func(register.Snapshot) (*Group, error)
	// edit changes members. The ballot began between two moments.
	edit func(w *simulation, b *Group, from, to int64)
	// accept, unless it is nil, changes what the masters accept, and read the replies.
	accept func(register.Decision) register.Decision
	read   func(register.Snapshot) register.Snapshot
	// report gets each violation.
	report func(format string, args ...any)
}

const noExpiry = int64(1) << 43

// TestExpiryAfterRandomChanges makes random changes, with masters that answer late or miss a
// change, and cells that expire at different times. No client finds that a key expired before its
// holder stopped relying on it, or exists long after that time. All values equal the values in a
// map.
func TestExpiryAfterRandomChanges(t *testing.T) {
	for seed := range uint64(150) {
		random := rand.New(rand.NewPCG(7, seed))
		w := &simulation{
			t: t, random: random, masters: make([]master, 3), now: 1000,
			validityEnds: map[string]int64{}, latestExpiries: map[string]int64{}, values: map[string]string{},
			simulated: simulated{open: openT, edit: (*simulation).editKeys, report: t.Errorf},
		}
		w.run(120)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func openT(f register.Snapshot) (*Group, error) { return Open("T", f) }

// run makes changes, with pauses of up to 65 seconds between them.
func (w *simulation) run(changes int) {
	for range changes {
		w.change()
		w.now += w.random.Int64N(1 << w.random.IntN(16))
	}
}

// change runs a ballot: two masters answer in time, and one answers late or never.
func (w *simulation) change() {
	order := w.random.Perm(3)
	start, elapsed := w.now, w.random.Int64N(40)
	answeredAt := map[int]int64{}
	for _, m := range order[:2] {
		answeredAt[m] = start + w.random.Int64N(elapsed+1)
	}
	f := register.Snapshot{Version: fmt.Sprint("cell", w.version)}
	base := 0
	for m, at := range answeredAt {
		if holder := &w.masters[m]; holder.expiry <= at {
			*holder = master{}
		} else {
			base = max(base, holder.version)
		}
	}
	if a, b := w.masters[order[0]].version, w.masters[order[1]].version; base > 0 && min(a, b) == 0 {
		return // the cell is about to expire, or on too few masters
	}
	var timesLeft []time.Duration
	for m, at := range answeredAt {
		if holder := w.masters[m]; base > 0 && holder.version == base {
			timesLeft = append(timesLeft, time.Duration(holder.expiry-at)*ms)
			f.Present, f.Value = !holder.removed, holder.text
		}
	}
	if f.Present {
		f.ShortestTimeLeft, f.LongestTimeLeft = slices.Min(timesLeft), slices.Max(timesLeft)
	}
	if f.LongestTimeLeft > time.Duration(noExpiry/2)*ms {
		f.ShortestTimeLeft, f.LongestTimeLeft = NoExpiry, NoExpiry
	}
	if w.read != nil {
		f = w.read(f)
	}
	b, err := w.open(f)
	if err != nil {
		w.t.Fatal(err)
	}
	w.compare(b, start, start+elapsed)
	isPresent := func(name string) bool { return b.Snapshot(name).Present }
	expired := slices.DeleteFunc(slices.Collect(maps.Keys(w.validityEnds)), isPresent)
	w.edit(w, b, start, start+elapsed)
	decision := mustEncode(w.t, b, fmt.Sprint("v", w.version))
	w.now += elapsed
	if decision.Action != register.NoChange {
		// Until now a master that did not answer may have had the key.
		for _, name := range expired {
			if !slices.Contains(b.Names(), name) {
				delete(w.validityEnds, name)
			}
		}
		w.write(decision, f, order, answeredAt, base, elapsed)
	}
}

// write lets the masters accept a decision. Masters that hold the base version shift their own
// expiry. The expiry on any other master is not before the earliest expiry on these masters.
func (w *simulation) write(
	decision register.Decision, f register.Snapshot, order []int, answeredAt map[int]int64, base int, elapsed int64,
) {
	w.version++
	if w.accept != nil {
		decision = w.accept(decision)
	}
	for i, m := range order {
		at := w.now + w.random.Int64N(20)
		if i == 2 {
			if w.random.IntN(2) == 0 {
				continue // the master misses the change
			}
			answeredAt[m] = at
		}
		holder := &w.masters[m]
		switch {
		case decision.Action == register.Remove:
			*holder = master{version: w.version, expiry: at + 3000, removed: true}
			continue
		case !decision.KeepTTL && decision.TTL == NoExpiry, decision.KeepTTL && f.LongestTimeLeft == NoExpiry:
			holder.expiry = noExpiry
		case !decision.KeepTTL:
			holder.expiry = at + decision.TTL.Milliseconds()
		case i < 2 && holder.version == base:
			holder.expiry += decision.Shift.Milliseconds()
		default:
			holder.expiry = answeredAt[m] + f.ShortestTimeLeft.Milliseconds() + elapsed + decision.Shift.Milliseconds()
		}
		holder.text, holder.version, holder.removed = decision.Value, w.version, false
	}
	w.now += 20
}

// compare checks the keys of a keygroup that was opened between two moments.
func (w *simulation) compare(b *Group, from, to int64) {
	for name, until := range w.validityEnds {
		e := b.Snapshot(name)
		switch {
		case !e.Present && to < until:
			w.report("%s is over %d ms expiryOffset its time", name, until-to)
		case e.Present && to > w.latestExpiries[name]:
			w.report("%s is there %d ms after its time", name, to-until)
		case e.Present && e.Value != w.values[name]:
			w.report("%s holds %q, not %q", name, e.Value, w.values[name])
		}
	}
	for _, name := range b.Names() {
		if _, exists := w.validityEnds[name]; !exists {
			w.report("%s is there", name)
		}
	}
}

// maxExpiryDifference limits the difference of the expiry on the masters: the delays of new values
// plus a round.
const maxExpiryDifference = 200

func (w *simulation) editKeys(b *Group, from, to int64) {
	for range 1 + w.random.IntN(2) {
		name := []string{"T", "a:{T}", "b:{T}", "c:{T}"}[w.random.IntN(4)]
		exists := b.Snapshot(name).Present
		switch choice := w.random.IntN(8); {
		case choice == 0 && exists:
			b.Remove(name)
			delete(w.validityEnds, name)
		case choice == 1 && exists:
			w.values[name] = fmt.Sprint("r", w.version)
			b.Replace(name, w.values[name])
		case choice == 2:
			w.values[name], w.validityEnds[name], w.latestExpiries[name] = fmt.Sprint("e", w.version), noExpiry, noExpiry
			b.Put(name, w.values[name], NoExpiry)
		default:
			ttl := 1 + w.random.Int64N(1<<(4+w.random.IntN(14)))
			w.values[name], w.validityEnds[name], w.latestExpiries[name] = fmt.Sprint("p", w.version), from+ttl, to+ttl+maxExpiryDifference
			b.Put(name, w.values[name], time.Duration(ttl)*ms)
		}
	}
}

// TestOtherExpiriesAfterExtension checks that repeated extensions of one key, with shifts of the
// cell, do not move the expiry of other keys.
func TestOtherExpiriesAfterExtension(t *testing.T) {
	now, end := int64(0), int64(0)
	b, _ := Open("T", register.Snapshot{})
	b.Put("T", "lock", time.Hour)
	b.Put("a:{T}", "a", time.Second)
	w := mustEncode(t, b, "0")
	end = w.TTL.Milliseconds()
	shifts := 0
	for i := range 2000 {
		now += 300
		b = mustOpen(t, w, time.Duration(end-now)*ms)
		if got, want := b.Snapshot("T").TimeLeft, time.Hour-time.Duration(now)*ms; got != want {
			t.Fatalf("after %d changes %v are left, not %v", i, got, want)
		}
		b.Put("a:{T}", "a", time.Duration(1+i%7*i)*time.Second)
		if i%5 == 0 {
			b.Put("q:{T}", "q", NoExpiry)
		} else {
			b.Remove("q:{T}")
		}
		w = mustEncode(t, b, fmt.Sprint(i))
		if end += w.Shift.Milliseconds(); w.Shift != 0 {
			shifts++
		}
		if !slices.Equal(mustOpen(t, w, time.Duration(end-now)*ms).Names(), b.Names()) {
			t.Fatal(b.Names())
		}
	}
	if shifts < 500 {
		t.Errorf("the cell was shifted %d times", shifts)
	}
}

// TestExpiryOnLastMaster checks that a key is present until it has expired on the master whose
// cell expires last. No master has a shorter remaining time than the reported one.
func TestExpiryOnLastMaster(t *testing.T) {
	members := []member{{"T", "me", "1", 9500 * ms}, {"a:{T}", "a", "1", 0}, {"b:{T}", "b", "1", 10 * time.Second}}
	f := register.Snapshot{Present: true, Value: encode(prefix, members)}
	f.LongestTimeLeft, f.ShortestTimeLeft = 10*time.Second, 9*time.Second
	b, err := Open("T", f)
	if err != nil {
		t.Fatal(err)
	}
	if want := "T=me/1ms@1 a:{T}=a/9s@1"; describe(b) != want {
		t.Errorf("%s, want %s", describe(b), want)
	}
}
