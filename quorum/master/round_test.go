package master

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"

	"redlock-proxy/quorum/cell"
	"redlock-proxy/quorum/register"
)

// decidedBy is a round of n masters that is decided by so many replies.
func decidedBy(n, decides int) *Round {
	r := newRound(n, func(replies []register.Reply) bool {
		return len(slices.DeleteFunc(slices.Clone(replies), func(r reply) bool { return r.State != register.Counted })) >= decides
	})
	r.fill(0, slices.Repeat([]cell.Op{cell.Read{Names: []string{"k"}}}, n))
	return r
}

var counted = reply{State: register.Counted}

// Each reply is told once: among those that decided, or later.
func TestRoundTellsLater(t *testing.T) {
	r := decidedBy(4, 2)
	r.answer(0, &counted)
	r.answer(2, &counted)
	if err := r.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.answer(3, &counted) // before it was asked for
	var told []int
	r.Later(func(master int, got reply) {
		if got.State != register.Counted {
			t.Errorf("master %d: %v", master, got.State)
		}
		told = append(told, master)
	})
	r.answer(1, &counted)
	if !slices.Equal(told, []int{3, 1}) {
		t.Errorf("told of %v", told)
	}
	var states []register.State
	for _, got := range r.Replies() {
		states = append(states, got.State)
	}
	if want := []register.State{register.Counted, register.Waiting, register.Counted, register.Waiting}; !slices.Equal(states, want) {
		t.Errorf("it was decided by %v, want %v", states, want)
	}
}

// What nothing waits for tells of each reply in its turn.
func TestRoundDecidedByNone(t *testing.T) {
	r := new(Rounds).Send(make([]*Master, 3), 0, make([]cell.Op, 3), func([]reply) bool { return true }, nil)
	if err := r.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	var told []int
	r.Later(func(master int, _ reply) { told = append(told, master) })
	r.answer(2, &counted)
	if !slices.Equal(told, []int{2}) {
		t.Errorf("told of %v", told)
	}
}

// A reply between the decision and the look at it is told with the others.
func TestRoundReplyInBetween(t *testing.T) {
	r := decidedBy(3, 2)
	for i := range 3 {
		r.answer(i, &counted)
	}
	_ = r.Wait(t.Context())
	r.Later(func(master int, _ reply) { t.Errorf("told of %d again", master) })
	if r.Replies()[2].State != register.Counted {
		t.Error("the third reply is missing")
	}
}

// Dropping takes back what was not sent, and nothing else.
func TestRoundDrop(t *testing.T) {
	r := decidedBy(3, 3)
	r.ops[0].send()
	left := errors.New("left")
	ctx, leave := context.WithCancelCause(t.Context())
	leave(left)
	if err := r.Wait(ctx); !errors.Is(err, left) {
		t.Error(err)
	}
	r.Drop()
	told := map[int]string{}
	r.Later(func(master int, got reply) { told[master] = fmt.Sprint(got.State == register.Failed) })
	if len(told) != 2 || told[1] != "true" || told[2] != "true" {
		t.Errorf("told %v", told)
	}
	if r.ops[1].send() {
		t.Error("what was dropped was sent")
	}
	r.answer(0, &counted)
	if told[0] != "false" {
		t.Errorf("told %v", told)
	}
}

// A round without an answer to wait for ends.
func TestRoundWhereNobodyAnswers(t *testing.T) {
	r := decidedBy(2, 1)
	r.answer(0, &reply{State: register.Unknown})
	r.answer(1, &reply{State: register.Failed})
	if err := r.Wait(t.Context()); err != nil {
		t.Error(err)
	}
}

// What was dropped is not answered again when its master goes down, nor what was refused
// when it is dropped.
func TestRoundAnswersOnce(t *testing.T) {
	m := New("m", nil, nil, slog.New(slog.DiscardHandler), func() float64 { return 0 })
	for _, order := range []string{"dropped, then refused", "refused, then dropped", "refused at once, then dropped"} {
		r := decidedBy(1, 1)
		r.ops[0].round = r
		switch order {
		case "dropped, then refused":
			left, leave := context.WithCancel(t.Context())
			leave()
			_ = r.Wait(left)
			r.Drop()
			m.refuse([]*op{&r.ops[0]}, errNotConnected)
		case "refused, then dropped":
			m.refuse([]*op{&r.ops[0]}, errNotConnected)
			_ = r.Wait(t.Context())
			r.Drop()
		default:
			m.ask(&r.ops[0], false)
			_ = r.Wait(t.Context())
			r.Drop()
		}
		told := 0
		r.Later(func(int, reply) { told++ })
		if r.Replies()[0].State == register.Failed {
			told++
		}
		if told != 1 {
			t.Errorf("%s: told %d times", order, told)
		}
	}
}
