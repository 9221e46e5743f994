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

// newRoundWithQuorum returns a round of n masters that is decided once the needed number of replies
// count.
func newRoundWithQuorum(n, needed int) *Round {
	r := newRound(n, func(replies []register.Reply) bool {
		return len(slices.DeleteFunc(slices.Clone(replies),
			func(r reply) bool { return r.State != register.Counted })) >= needed
	})
	r.fill(0, slices.Repeat([]cell.Op{cell.Read{Names: []string{"k"}}}, n))
	return r
}

var countedReply = reply{State: register.Counted}

// TestLaterReplies checks that the round reports each reply once, either in Replies or to the
// function of OnLaterReply.
func TestLaterReplies(t *testing.T) {
	r := newRoundWithQuorum(4, 2)
	r.handleReply(0, &countedReply)
	r.handleReply(2, &countedReply)
	if err := r.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.handleReply(3, &countedReply) // before OnLaterReply is called
	var reportedMasters []int
	r.OnLaterReply(func(master int, got reply) {
		if got.State != register.Counted {
			t.Errorf("master %d: %v", master, got.State)
		}
		reportedMasters = append(reportedMasters, master)
	})
	r.handleReply(1, &countedReply)
	if !slices.Equal(reportedMasters, []int{3, 1}) {
		t.Errorf("reported masters %v", reportedMasters)
	}
	var states []register.State
	for _, got := range r.Replies() {
		states = append(states, got.State)
	}
	if want := []register.State{register.Counted, register.Waiting, register.Counted,
		register.Waiting}; !slices.Equal(states, want) {
		t.Errorf("decided by %v, want %v", states, want)
	}
}

// TestRoundDecidedWithoutReplies checks that a round that is decided without replies passes each
// reply to the function of OnLaterReply.
func TestRoundDecidedWithoutReplies(t *testing.T) {
	r := new(Rounds).Send(make([]*Master, 3), 0, make([]cell.Op, 3), func([]reply) bool { return true }, nil)
	if err := r.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	var reported []int
	r.OnLaterReply(func(master int, _ reply) { reported = append(reported, master) })
	r.handleReply(2, &countedReply)
	if !slices.Equal(reported, []int{2}) {
		t.Errorf("reported masters %v", reported)
	}
}

// TestRoundReplyInBetween checks that Replies includes a reply that arrives between the decision
// and Wait.
func TestRoundReplyInBetween(t *testing.T) {
	r := newRoundWithQuorum(3, 2)
	for i := range 3 {
		r.handleReply(i, &countedReply)
	}
	_ = r.Wait(t.Context())
	r.OnLaterReply(func(master int, _ reply) { t.Errorf("master %d was reported again", master) })
	if r.Replies()[2].State != register.Counted {
		t.Error("the third reply is missing")
	}
}

// TestRoundDrop checks that Drop cancels only the ops that were not sent.
func TestRoundDrop(t *testing.T) {
	r := newRoundWithQuorum(3, 3)
	r.ops[0].markSent()
	cause := errors.New("canceled")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	if err := r.Wait(ctx); !errors.Is(err, cause) {
		t.Error(err)
	}
	r.Drop()
	reported := map[int]string{}
	r.OnLaterReply(func(master int, got reply) { reported[master] = fmt.Sprint(got.State == register.Failed) })
	if len(reported) != 2 || reported[1] != "true" || reported[2] != "true" {
		t.Errorf("reported %v", reported)
	}
	if r.ops[1].markSent() {
		t.Error("a dropped op was sent")
	}
	r.handleReply(0, &countedReply)
	if reported[0] != "false" {
		t.Errorf("reported %v", reported)
	}
}

// TestRoundWithoutCountedReplies checks that a round ends if no master sends a reply that counts.
func TestRoundWithoutCountedReplies(t *testing.T) {
	r := newRoundWithQuorum(2, 1)
	r.handleReply(0, &reply{State: register.Unknown})
	r.handleReply(1, &reply{State: register.Failed})
	if err := r.Wait(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestSingleReplyOfRound checks that a dropped op is not answered again when its master goes down.
// Nor is a refused op answered again when it is dropped.
func TestSingleReplyOfRound(t *testing.T) {
	m := New("m", nil, nil, slog.New(slog.DiscardHandler), func() float64 { return 0 })
	for _, order := range []string{"dropped, then refused", "refused, then dropped", "refused at once, then dropped"} {
		r := newRoundWithQuorum(1, 1)
		r.ops[0].round = r
		switch order {
		case "dropped, then refused":
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			_ = r.Wait(ctx)
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
		reports := 0
		r.OnLaterReply(func(int, reply) { reports++ })
		if r.Replies()[0].State == register.Failed {
			reports++
		}
		if reports != 1 {
			t.Errorf("%s: reported %d times", order, reports)
		}
	}
}
