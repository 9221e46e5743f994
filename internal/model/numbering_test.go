package model

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"redlock-proxy/quorum/cell"
	"redlock-proxy/quorum/register"
)

// TestDifferentReplies checks that replies that differ in any field have different numbers.
func TestDifferentReplies(t *testing.T) {
	l := newTables(&Scenario{N: 3, Ops: []Op{lockA}})
	plain := cell.Cell{Form: cell.Plain, Attempt: numberedSource(0).Attempt(), Value: cell.Value{Present: true, Text: "a"}}
	replies := []register.Reply{{State: register.Counted}, {State: register.Uncounted}}
	for _, answer := range []cell.Answer{
		{Applied: true}, {Now: time.Second}, {Fences: []int64{1}}, {Fences: []int64{2}},
		{KeyStates: []cell.KeyState{{}}}, {KeyStates: []cell.KeyState{{}, {}}},
		{KeyStates: []cell.KeyState{{Cell: plain, TimeLeft: cell.NoExpiry}}},
		{KeyStates: []cell.KeyState{{Cell: plain, TimeLeft: cell.NotReported}}},
		{KeyStates: []cell.KeyState{{Cell: plain, TimeLeft: time.Second}}},
		{KeyStates: []cell.KeyState{{Cell: plain, TimeLeft: time.Minute}}},
		{KeyStates: []cell.KeyState{{Cell: plain, TimeLeft: time.Minute}, {}}},
		{KeyStates: []cell.KeyState{{}, {Cell: plain, TimeLeft: time.Minute}}},
	} {
		replies = append(replies, register.Reply{State: register.Counted, Answer: answer})
	}
	for _, r := range replies {
		if got := l.reply(l.replyID(r)); !reflect.DeepEqual(got, r) {
			t.Errorf("%+v has the number of %+v", r, got)
		}
	}
}

// TestDifferentProxyStates checks that proxies that may behave differently have different states.
func TestDifferentProxyStates(t *testing.T) {
	l := newTables(&Scenario{N: 3, Retries: 1, Ops: []Op{get0, {Kind: GetSet, Token: 'b'}, lockA}})
	countedReply := func(isApplied bool, c cell.Cell) replyID {
		return l.replyID(register.Reply{State: register.Counted, Answer: cell.Answer{Applied: isApplied,
			KeyStates: []cell.KeyState{{Cell: c, TimeLeft: cell.NoExpiry}}}})
	}
	source := numberedSource(1)
	plain := cell.Cell{Form: cell.Plain, Attempt: source.Attempt(), Value: cell.Value{Present: true, Text: "a"}}
	higher := cell.Cell{Form: cell.Register, Attempt: plain.Attempt, Promised: source.Ballot(9), Value: plain.Value}
	absent, present := countedReply(true, cell.Cell{}), countedReply(true, plain)
	roundEnd := func(task, round uint8, replies ...replyID) input {
		in := input{kind: inputRoundEnd, task: task, round: round}
		copy(in.replies[:], replies)
		return in
	}
	getInputs := []input{{kind: inputStart, task: 0}, roundEnd(0, 0, present, absent, absent), {kind: inputCallback}}
	takeInputs := []input{{kind: inputStart, task: 2}, roundEnd(2, 0, countedReply(false, plain), countedReply(false, plain),
		countedReply(false, plain))}
	setInputs := []input{{kind: inputStart, task: 1}, roundEnd(1, 0, present, present, present),
		roundEnd(1, 1, present, countedReply(false, higher), countedReply(false, higher))}
	for _, test := range []struct {
		name          string
		first, second []input
	}{
		{"in the key that a callback sweeps",
			append(slices.Clone(getInputs), roundEnd(101, 0, present, absent, absent)),
			append(slices.Clone(getInputs), roundEnd(101, 0, absent, present, absent))},
		{"in the IDs of an operation with concurrent operations", slices.Concat(takeInputs, setInputs), slices.Concat(setInputs, takeInputs)},
	} {
		t.Run(test.name, func(t *testing.T) {
			p, q := newProxy(l, 0), newProxy(l, 0)
			defer p.close()
			defer q.close()
			for i := range test.first {
				p.handle(test.first[i])
				q.handle(test.second[i])
			}
			if p.String() == q.String() {
				t.Errorf("they have the same state: %q", p.String())
			}
		})
	}
}
