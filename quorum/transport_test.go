package quorum

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// startMasters runs n Redis servers in memory and a cluster over them.
func startMasters(t *testing.T, n int) ([]*miniredis.Miniredis, *Cluster) {
	t.Helper()
	var masters []*miniredis.Miniredis
	var urls []string
	for range n {
		m := miniredis.RunT(t)
		m.ClockTTL(true)
		masters = append(masters, m)
		urls = append(urls, "redis://"+m.Addr())
	}
	c, err := NewCluster(Options{Masters: urls, MasterTimeout: time.Second, FreshStart: true})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = c.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	for up(c.electors) < len(c.electors) {
		time.Sleep(time.Millisecond)
	}
	return masters, c
}

// TestWire sends every kind of change, by SHA and whole, to a server that speaks
// Redis and runs Lua.
func TestWire(t *testing.T) {
	masters, _ := startMasters(t, 1)
	server := masters[0]
	transport, err := newRedisTransport("redis://"+server.Addr(), time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer transport.close()
	undo := func(min time.Duration) Change {
		return Change{kind: kindUndo, key: job, token: token, ttl: time.Minute, minLeft: min}
	}
	other := job
	other.DB = 3
	steps := []wireStep{
		{"acquire a free key", Acquire(job, token, time.Minute), reply{vote: voteYes}},
		{"acquire a held key", Acquire(job, rival, time.Minute), reply{vote: voteNo}},
		{"the same in another database", Acquire(other, rival, time.Minute), reply{vote: voteYes}},
		{"release with a wrong token", Release(job, rival), refused(token, time.Minute)},
		{"extend with a wrong token", Extend(job, rival, time.Hour), refused(token, time.Minute)},
		{"undo of a younger SET", undo(2 * time.Minute), reply{vote: voteNo}},
		{"undo of this SET", undo(50 * time.Second), reply{vote: voteYes}},
		{"acquire again", Acquire(job, token, time.Minute), reply{vote: voteYes}},
		{"extend", Extend(job, token, time.Hour), reply{vote: voteYes}},
		{"undo of a shorter SET", undo(0), reply{vote: voteNo}},
		{"release", Release(job, token), reply{vote: voteYes}},
		{"release an absent key", Release(job, token), reply{vote: voteAbsent}},
		{"extend an absent key", Extend(job, token, time.Hour), reply{vote: voteAbsent}},
		{"read an absent key", read([]Key{job}), reply{vote: voteYes, entries: []Entry{{}}}},
		{"acquire without expiry", Acquire(job, token, Endless), reply{vote: voteYes}},
		{"undo of a SET with expiry", undo(0), reply{vote: voteNo}},
		{"read two keys", read([]Key{job, rest}), reply{vote: voteYes, entries: []Entry{endless(token), {}}}},
		{"edits, one of which does not fit", edits(Edit{Key: job, Was: endless(token)}, Edit{Key: rest, Was: endless(token)}),
			reply{vote: voteNo, entries: []Entry{endless(token), {}}}},
		{"edits that fit", edits(Edit{Key: job, Was: endless(token), Now: lasting(rival, time.Minute)}, Edit{Key: rest, Now: endless(rival)}),
			reply{vote: voteYes, entries: []Entry{endless(token), {}}}},
		{"edits that keep the time", edits(Edit{Key: job, Was: endless(rival), Now: endless(token), KeepLeft: true}, Edit{Key: rest, Was: endless(rival), Now: endless(rival), KeepLeft: true}),
			reply{vote: voteYes, entries: []Entry{lasting(rival, time.Minute), endless(rival)}}},
		{"edits that remove", edits(Edit{Key: job, Was: endless(token)}, Edit{Key: rest, Was: endless(rival)}),
			reply{vote: voteYes, entries: []Entry{lasting(token, time.Minute), endless(rival)}}},
		{"acquire without expiry again", Acquire(job, token, Endless), reply{vote: voteYes}},
		{"undo of a SET without expiry", Change{kind: kindUndo, key: job, token: token, ttl: Endless, minLeft: Endless}, reply{vote: voteYes}},
	}
	for _, eval := range []bool{false, true} {
		server.FlushAll()
		for _, s := range append(steps, offerSteps()...) {
			replies := make([]reply, 1)
			if err := transport.exec(t.Context(), []*op{{change: s.change, eval: eval}}, replies, nil); err != nil {
				t.Fatalf("%s: %v", s.what, err)
			}
			if got := replies[0].roughly(); !reflect.DeepEqual(got, s.want) {
				t.Errorf("%s: got %+v, want %+v", s.what, replies[0], s.want)
			}
		}
	}
}

// wireStep is a change and the answer to it.
type wireStep struct {
	what   string
	change Change
	want   reply
}

// offerSteps begin and end with an absent key.
func offerSteps() []wireStep {
	yes, no, absent := reply{vote: voteYes}, reply{vote: voteNo}, reply{vote: voteAbsent}
	offered := func(nonce string) Change { return offer(job, token, nonce, time.Minute) }
	mended := func(nonce string) Change { return mend(job, token, nonce, time.Minute) }
	removal := func(value string) Change { return edits(Edit{Key: job, Was: endless(value)}, Edit{Key: rest}) }
	return []wireStep{
		{"take up what was not offered", mended("1"), no},
		{"offer", offered("1"), yes},
		{"offer again", offered("2"), no},
		{"an offer is no lock", read([]Key{job}), reply{vote: voteYes, entries: []Entry{{}}}},
		{"a wrong owner's release leaves the offer", Release(job, rival), absent},
		{"and so does his edit", removal(rival), reply{vote: voteNo, entries: []Entry{{}, {}}}},
		{"take up another offer", mended("2"), no},
		{"take up the offer", mended("1"), yes},
		{"it is a lock now", read([]Key{job}), reply{vote: voteYes, entries: []Entry{lasting(token, time.Minute)}}},
		{"offer what is there", offered("3"), no},
		{"release", Release(job, token), yes},
		{"offer once more", offered("4"), yes},
		{"the owner's release takes the offer away", Release(job, token), absent},
		{"so nothing is offered", mended("4"), no},
		{"offer for an edit", offered("5"), yes},
		{"an edit takes it away", removal(token), reply{vote: voteNo, entries: []Entry{{}, {}}}},
		{"so nothing is offered any more", mended("5"), no},
		{"offer what another takes", offered("6"), yes},
		{"another takes it", Acquire(job, rival, Endless), yes},
		{"a held key is not given away", mended("6"), no},
		{"the other has it", read([]Key{job}), reply{vote: voteYes, entries: []Entry{endless(rival)}}},
		{"and releases it", Release(job, rival), yes},
		{"offer without an end", offered("7"), yes},
		{"take that up", mend(job, token, "7", Endless), yes},
		{"it has no end", read([]Key{job}), reply{vote: voteYes, entries: []Entry{endless(token)}}},
		{"and is released", Release(job, token), yes},
	}
}

var rest = Key{Name: "rest"}

func endless(value string) Entry { return Entry{Present: true, Value: value, Left: Endless} }

func lasting(value string, left time.Duration) Entry {
	return Entry{Present: true, Value: value, Left: left}
}

func edits(all ...Edit) Change { return Change{kind: kindEdit, key: all[0].Key, edits: all} }

func refused(value string, left time.Duration) reply {
	return reply{vote: voteNo, entries: []Entry{lasting(value, left)}}
}

// roughly is the reply with the remaining times rounded up to seconds.
func (r reply) roughly() reply {
	for i, e := range r.entries {
		switch {
		case !e.Present:
			r.entries[i].Left = 0
		case e.Left < 0:
			r.entries[i].Left = Endless
		default:
			r.entries[i].Left = (e.Left + time.Second - 1).Truncate(time.Second)
		}
	}
	return r
}

func TestWireRead(t *testing.T) {
	masters, c := startMasters(t, 3)
	for _, m := range masters {
		_ = m.Set(job.Name, token)
		m.SetTTL(job.Name, time.Minute)
	}
	got, err := c.Read(t.Context(), job)
	if err != nil || !got.Held || got.Value != token || got.Left < 59*time.Second || got.Left > time.Minute {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestScriptFlushIsSurvived(t *testing.T) {
	masters, c := startMasters(t, 3)
	if _, err := c.Commit(t.Context(), Acquire(job, token, time.Minute)); err != nil {
		t.Fatal(err)
	}
	for _, m := range masters {
		conn, err := newRedisTransport("redis://"+m.Addr(), time.Second)
		if err != nil {
			t.Fatal(err)
		}
		conn.client(0).ScriptFlush(t.Context())
		conn.close()
	}
	if _, err := c.Commit(t.Context(), Release(job, token)); err != nil {
		t.Errorf("release after SCRIPT FLUSH: %v", err)
	}
}

// On a long way more than one batch may be in flight, unless that would lose the order
// of edits of several keys.
func TestLanes(t *testing.T) {
	for _, c := range []struct {
		roundTrip time.Duration
		oneLane   bool
		want      uint32
	}{{longRoundTrip - 1, false, 1}, {longRoundTrip, false, maxLanes}, {longRoundTrip, true, 1}} {
		m := &master{oneLane: c.oneLane}
		if got := m.lanesFor(c.roundTrip); got != c.want {
			t.Errorf("%v, one lane %v: %d lanes, want %d", c.roundTrip, c.oneLane, got, c.want)
		}
	}
}

func TestErrorReplyIsAVoteThatFailed(t *testing.T) {
	masters, c := startMasters(t, 3)
	masters[0].SetError("OOM command not allowed when used memory > 'maxmemory'.")
	masters[1].SetError("LOADING Redis is loading the dataset in memory")
	_, err := c.Commit(t.Context(), Acquire(job, token, time.Minute))
	var none *NoQuorumError
	if !errors.As(err, &none) || none.Answered != 1 {
		t.Fatalf("got %v, want no quorum with one answer", err)
	}
}

func TestMasterURLs(t *testing.T) {
	for _, u := range []string{"redis://localhost:6379/3", "http://localhost", "redis://:p%zz@localhost", ""} {
		if _, err := NewCluster(Options{Masters: []string{u}}); err == nil {
			t.Errorf("%q was taken for a master", u)
		}
	}
	if _, err := NewCluster(Options{}); err == nil {
		t.Error("a cluster without masters")
	}
}
