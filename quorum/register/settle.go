package register

import (
	"context"
	"time"

	"redlock-proxy/quorum/cell"
)

// settles are the pauses before an attempt is looked at of which too few masters answered.
var settles = [...]time.Duration{time.Second, 5 * time.Second, 30 * time.Second}

// settleLater looks at an attempt that may stand on a majority or not. Where it surely does
// not, what the others hold of it is undone; where it does, a client may have seen it, and
// it stays.
func (r *Register) settleLater(op cell.Take, tries int) {
	if tries == len(settles) {
		return
	}
	r.masters.After(settles[tries], func() {
		ctx, cancel := context.WithTimeout(context.Background(), mendTime)
		defer cancel()
		for _, key := range op.Names {
			asked, err := r.masters.Ask(ctx, all(r.n, cell.Read{Names: []string{key}}), func([]Reply) bool { return false })
			if err != nil {
				return
			}
			f := resolve(r.n, asked.Replies(), 0)
			switch {
			case f.standing == Open:
				r.settleLater(op, tries+1)
				return
			case f.attempt == op.Attempt && f.standing == Held:
				return
			}
		}
		for i := range r.n {
			r.undo(op.Names, op.Attempt, i)
		}
	})
}
