package commands

import "context"

// needsTurn reports whether others are likely to change the keys of an attempt at the
// same moment: it replaces a value, which anybody may, or it is not the first.
func (f *performance) needsTurn(a attempt) bool {
	if f.endTurn != nil {
		return false
	}
	for _, e := range a.edits {
		if f.failures > 0 || e.Was.Present && e.Now.Present && e.Was.Value != e.Now.Value {
			return true
		}
	}
	return false
}

// takeTurn waits until it is this program's turn to change a key. waited is set where
// others had theirs before.
func (f *performance) takeTurn(ctx context.Context, key string) (waited bool, err error) {
	for tries := 0; ; tries++ {
		end, ok := f.opts.Register.Turn(ctx, f.place(f.db, key))
		if ok {
			f.endTurn = end
			return tries > 0, nil
		}
		if f.opts.Now().After(f.until) {
			return true, &contendedError{key}
		}
		if err := f.pause(ctx, f.backOff(tries)); err != nil {
			return true, err
		}
	}
}

func (f *performance) leaveTurn() {
	if f.endTurn != nil {
		f.endTurn()
	}
}
