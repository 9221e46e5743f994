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

// recorder is an echo transport that records the keys that each batch reads.
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
	recorder *recorder
}

func (k recorderLink) Send(f *Batch) bool {
	var keys []string
	for _, o := range f.ops {
		keys = append(keys, o.cellOp.Keys()...)
	}
	k.recorder.batches = append(k.recorder.batches, fmt.Sprint(keys))
	return k.Link.Send(f)
}

// TestDelayedOps checks that delayed ops are sent ahead of the ops that follow, in one batch for
// each master. If no op follows, the delayed ops are sent alone.
func TestDelayedOps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		recorders := []*recorder{{}, {}}
		masters := []*Master{runMasterWithTransport(t, recorders[0]), runMasterWithTransport(t, recorders[1])}
		synctest.Wait()
		var rounds Rounds
		read := func(key string, onQueued func() bool) *Round {
			ops := slices.Repeat([]cell.Op{cell.Read{Names: []string{key}}}, len(masters))
			return rounds.Send(masters, 0, ops, func(replies []register.Reply) bool { return false }, onQueued)
		}
		wait := func(r *Round, want time.Duration) {
			t.Helper()
			start := time.Now()
			if err := r.Wait(t.Context()); err != nil || time.Since(start) != want {
				t.Errorf("%v after %v, want %v", err, time.Since(start), want)
			}
			synctest.Wait() // the lanes are idle
		}
		wait(read("alone", func() bool { return false }), 0)
		wait(read("not followed", func() bool { return true }), sendDelay)
		following := make(chan *Round, 1)
		wait(read("release", func() bool {
			go func() { following <- read("take", nil) }()
			return true
		}), 0)
		wait(<-following, 0)
		time.Sleep(sendDelay) // nothing is sent twice
		for _, rec := range recorders {
			if want := []string{"[alone]", "[not followed]", "[release take]"}; !slices.Equal(rec.batches, want) {
				t.Errorf("sent %q, want %q", rec.batches, want)
			}
		}
	})
}
