package model

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"redlock-proxy/quorum/cell"
	"redlock-proxy/quorum/register"
)

// TestRepliesThatDiffer: replies that differ in any field have different numbers.
func TestRepliesThatDiffer(t *testing.T) {
	l := newTables(&Scenario{N: 3, Ops: []Op{lockA}})
	plain := cell.Cell{Form: cell.Plain, Attempt: numberedSource(0).Attempt(), Value: cell.Value{Present: true, Text: "a"}}
	replies := []register.Reply{{State: register.Counted}, {State: register.Uncounted}}
	for _, answer := range []cell.Answer{
		{Did: true}, {Now: time.Second}, {Fences: []int64{1}}, {Fences: []int64{2}},
		{Found: []cell.Found{{}}}, {Found: []cell.Found{{}, {}}},
		{Found: []cell.Found{{Cell: plain, Left: cell.Endless}}},
		{Found: []cell.Found{{Cell: plain, Left: cell.NotReported}}},
		{Found: []cell.Found{{Cell: plain, Left: time.Second}}},
		{Found: []cell.Found{{Cell: plain, Left: time.Minute}}},
		{Found: []cell.Found{{Cell: plain, Left: time.Minute}, {}}},
		{Found: []cell.Found{{}, {Cell: plain, Left: time.Minute}}},
	} {
		replies = append(replies, register.Reply{State: register.Counted, Answer: answer})
	}
	for _, r := range replies {
		if got := l.reply(l.replyID(r)); !reflect.DeepEqual(got, r) {
			t.Errorf("%+v was taken for %+v", r, got)
		}
	}
}

// TestProxiesThatDiffer: proxies that may behave differently have different states.
func TestProxiesThatDiffer(t *testing.T) {
	l := newTables(&Scenario{N: 3, Retries: 1, Ops: []Op{get0, {Do: GetSet, Token: 'b'}, lockA}})
	counted := func(did bool, c cell.Cell) replyID {
		return l.replyID(register.Reply{State: register.Counted, Answer: cell.Answer{Did: did,
			Found: []cell.Found{{Cell: c, Left: cell.Endless}}}})
	}
	other := numberedSource(1)
	plain := cell.Cell{Form: cell.Plain, Attempt: other.Attempt(), Value: cell.Value{Present: true, Text: "a"}}
	higher := cell.Cell{Form: cell.Register, Attempt: plain.Attempt, Promised: other.Ballot(9), Value: plain.Value}
	absent, left := counted(true, cell.Cell{}), counted(true, plain)
	ends := func(task, round uint8, replies ...replyID) input {
		in := input{kind: end, task: task, round: round}
		copy(in.replies[:], replies)
		return in
	}
	gets := []input{{kind: start, task: 0}, ends(0, 0, left, absent, absent), {kind: fire}}
	takes := []input{{kind: start, task: 2}, ends(2, 0, counted(false, plain), counted(false, plain),
		counted(false, plain))}
	sets := []input{{kind: start, task: 1}, ends(1, 0, left, left, left),
		ends(1, 1, left, counted(false, higher), counted(false, higher))}
	for _, test := range []struct {
		name     string
		one, two []input
	}{
		{"in what a callback is to sweep",
			append(slices.Clone(gets), ends(101, 0, left, absent, absent)),
			append(slices.Clone(gets), ends(101, 0, absent, left, absent))},
		{"in the ids of an operation that others ran beside", slices.Concat(takes, sets), slices.Concat(sets, takes)},
	} {
		t.Run(test.name, func(t *testing.T) {
			p, q := newProxy(l, 0), newProxy(l, 0)
			defer p.close()
			defer q.close()
			for i := range test.one {
				p.handle(test.one[i])
				q.handle(test.two[i])
			}
			if p.String() == q.String() {
				t.Errorf("they are taken for one: %q", p.String())
			}
		})
	}
}
