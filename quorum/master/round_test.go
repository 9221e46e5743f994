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

// decidedBy returns a round of n masters that this many replies decide.
func decidedBy(n, decides int) *Round {
	r := newRound(n, func(replies []register.Reply) bool {
		return len(slices.DeleteFunc(slices.Clone(replies),
			func(r reply) bool { return r.State != register.Counted })) >= decides
	})
	r.fill(0, slices.Repeat([]cell.Op{cell.Read{Names: []string{"k"}}}, n))
	return r
}

var counted = reply{State: register.Counted}

// TestRoundTellsLater: each reply is reported once, either among the replies that decided or to
// Later.
func TestRoundTellsLater(t *testing.T) {
	r := decidedBy(4, 2)
	r.answer(0, &counted)
	r.answer(2, &counted)
	if err := r.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.answer(3, &counted) // before Later is called
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
	if want := []register.State{register.Counted, register.Waiting, register.Counted,
		register.Waiting}; !slices.Equal(states, want) {
		t.Errorf("it was decided by %v, want %v", states, want)
	}
}

// TestRoundDecidedByNone: a round that is decided without replies passes each reply to Later.
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

// TestRoundReplyInBetween: a reply between the decision and Wait is among the first replies.
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

// TestRoundDrop: Drop cancels only the ops that were not sent.
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

// TestRoundWithoutAnswers: a round ends if no master answers.
func TestRoundWithoutAnswers(t *testing.T) {
	r := decidedBy(2, 1)
	r.answer(0, &reply{State: register.Unknown})
	r.answer(1, &reply{State: register.Failed})
	if err := r.Wait(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestRoundAnswersOnce: a dropped op is not answered again when its master goes down, and a refused
// op is not answered again when it is dropped.
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
			m.enqueue(&r.ops[0], false)
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
