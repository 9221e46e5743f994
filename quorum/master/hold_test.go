package master

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"redlock-proxy/quorum/cell"
	"redlock-proxy/quorum/register"
)

// recorder is an echo that records which keys each batch reads. It is used in one synctest bubble.
type recorder struct {
	echo
	batches []string
}

func (r *recorder) Dial(ctx context.Context, db int) (Link, error) {
	k, err := r.echo.Dial(ctx, db)
	return recorderLink{k, r}, err
}

type recorderLink struct {
	Link
	to *recorder
}

func (k recorderLink) Send(f *Batch) bool {
	var keys []string
	for _, o := range f.ops {
		keys = append(keys, o.do.Keys()...)
	}
	k.to.batches = append(k.to.batches, fmt.Sprint(keys))
	return k.Link.Send(f)
}

// TestHeldOps: ops that are held for following ops are sent ahead of them in the same batch, one
// for each master. If no op follows they are sent alone.
func TestHeldOps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := []*recorder{{}, {}}
		masters := []*Master{working(t, to[0]), working(t, to[1])}
		synctest.Wait()
		var rounds Rounds
		read := func(key string, queued func() bool) *Round {
			ops := slices.Repeat([]cell.Op{cell.Read{Names: []string{key}}}, len(masters))
			return rounds.Send(masters, 0, ops, func(replies []register.Reply) bool { return false }, queued)
		}
		wait := func(r *Round, want time.Duration) {
			t.Helper()
			begun := time.Now()
			if err := r.Wait(t.Context()); err != nil || time.Since(begun) != want {
				t.Errorf("%v after %v, want %v", err, time.Since(begun), want)
			}
			synctest.Wait() // the lanes are idle
		}
		wait(read("alone", func() bool { return false }), 0)
		wait(read("left", func() bool { return true }), holdTime)
		followed := make(chan *Round, 1)
		wait(read("release", func() bool {
			go func() { followed <- read("take", nil) }()
			return true
		}), 0)
		wait(<-followed, 0)
		time.Sleep(holdTime) // nothing is sent twice
		for _, one := range to {
			if want := []string{"[alone]", "[left]", "[release take]"}; !slices.Equal(one.batches, want) {
				t.Errorf("sent %q, want %q", one.batches, want)
			}
		}
	})
}
