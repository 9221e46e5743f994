package watch

import (
	"strings"
	"testing"
	"time"
)

// marks sets a ChangeWatch, and waits until it is settled. Reports arrive over the channel.
func marks(t *testing.T, w *Watcher, key string) (*ChangeWatch, chan Report) {
	t.Helper()
	news := make(chan Report, 10)
	m := w.Mark(0, key, func(n Report) { news <- n })
	select {
	case <-m.Settled():
	case <-time.After(30 * time.Second):
		t.Fatal("it does not settle")
	}
	return m, news
}

func hears(t *testing.T, news chan Report, want Report) {
	t.Helper()
	select {
	case got := <-news:
		if got != want {
			t.Errorf("%v, want %v", got, want)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("it hears nothing")
	}
}

// TestMark: changes of existing and absent keys are reported, and also the end of the reports.
func TestMark(t *testing.T) {
	w, _, client := real(t)
	absent, ofAbsent := marks(t, w, "absent")
	do(t, client, "SET", "k", "x")
	held, ofHeld := marks(t, w, "k")
	if !absent.Watched() || !held.Watched() {
		t.Fatal("they are not watched")
	}
	do(t, client, "SET", "absent", "x")
	hears(t, ofAbsent, Changes)
	do(t, client, "PEXPIRE", "k", "100")
	hears(t, ofHeld, Changes)
	again, ofAgain := marks(t, w, "k")
	held.Stop()
	hears(t, ofAgain, Changes) // the key expires
	other, ofOther := marks(t, w, "k")
	again.Stop()
	w.Close()
	hears(t, ofOther, Unwatched)
	hears(t, ofAbsent, Unwatched)
	if other.Watched() || len(ofHeld)+len(ofAgain) > 0 {
		t.Error("there is more to be heard")
	}
	other.Stop()
	absent.Stop()
	if len(w.byDB[0][0].alarms) != 0 {
		t.Error("keys are left")
	}
}

// TestMarkUnwatched: a ChangeWatch settles if its key cannot be watched.
func TestMarkUnwatched(t *testing.T) {
	w, _, client := real(t)
	long, _ := marks(t, w, strings.Repeat("k", longestKey+1))
	do(t, client, "ACL", "SETUSER", "default", "-client|tracking")
	refused, _ := marks(t, w, "k")
	for _, m := range []*ChangeWatch{long, refused} {
		if m.Watched() {
			t.Error("it is watched")
		}
		m.Stop()
	}
	w.Close()
	closed, _ := marks(t, w, "k")
	if closed.Watched() {
		t.Error("it is watched after the end")
	}
}

// TestMarkUpdates: reports of three masters, one after the other.
func TestMarkUpdates(t *testing.T) {
	on := func(s state) sighting { return sighting{state: s} }
	stale := sighting{state: changed, stale: true}
	for name, test := range map[string]struct {
		sees    []sighting // of master 0, 1, 2, 0 …
		settled bool
		watched bool
		want    []Report
	}{
		"a majority is armed": {[]sighting{on(held), on(free)}, true, true, nil},
		"one is armed":        {[]sighting{on(held)}, false, false, nil},
		"two are unknown":     {[]sighting{on(held), on(unknown), on(unknown)}, true, false, nil},
		"changes before the looks": {[]sighting{on(changed), on(changed), on(changed), on(held), on(held)}, true,
			true, nil},
		"a look that is stale": {[]sighting{stale, on(held)}, true, true, []Report{SomeChanged}},
		"a change": {[]sighting{on(held), on(held), on(held), on(changed)}, true, true,
			[]Report{SomeChanged}},
		"a change that another looks at": {[]sighting{on(held), on(held), on(held), on(changed), on(held), on(held)},
			true, true, []Report{SomeChanged}},
		"two changes": {[]sighting{on(held), on(held), on(held), on(changed), on(changed)}, true,
			true, []Report{SomeChanged, Changes}},
		"one that is lost": {[]sighting{on(held), on(held), on(held), on(unknown)}, true, true,
			[]Report{Unwatched}},
		"one that is lost and comes back": {
			[]sighting{on(held), on(held), on(unknown), on(held), on(held), on(asked), on(held), on(held), on(free)},
			true, true, nil},
		"lost after a change, and no more": {[]sighting{on(held), on(held), on(unknown), on(changed), on(unknown)},
			true, false, []Report{SomeChanged, Unwatched}},
	} {
		var news []Report
		m := &ChangeWatch{quorum: 2, seen: []state{asked, asked, asked}, settled: make(chan struct{}),
			tell: func(n Report) { news = append(news, n) }}
		for i, s := range test.sees {
			m.update(i%3, s)
		}
		settled := false
		select {
		case <-m.Settled():
			settled = true
		default:
		}
		if settled != test.settled || m.Watched() != test.watched || len(news) != len(test.want) {
			t.Errorf("%s: settled %v, watched %v, %v", name, settled, m.Watched(), news)
			continue
		}
		for i := range news {
			if news[i] != test.want[i] {
				t.Errorf("%s: %v", name, news)
			}
		}
	}
}
