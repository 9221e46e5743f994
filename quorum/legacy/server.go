// Package legacy asks the legacy server: the single Redis that held the locks until now. While
// some clients still lock there directly, it has to agree to whatever a majority of the masters
// agrees to, and what it holds is held. Its values are the clients' own, without envelopes,
// because those clients read them. So an attempt is undone there only where its answer said that
// it created the key.
package legacy

import (
	"context"
	"time"

	"redlock-proxy/quorum/cell"
	"redlock-proxy/quorum/master"
	"redlock-proxy/quorum/register"
)

// Server is the legacy server. All its methods may return a *NoAnswerError, or the cause of ctx.
type Server struct{ *master.Master }

// NoAnswerError says that the server gave no answer, or refused.
type NoAnswerError struct {
	// Server is its address, without credentials.
	Server string
	// Err is what happened.
	Err error
}

// Error is the address and what happened, in plain words.
func (e *NoAnswerError) Error() string { return e.Server + ": " + master.CauseText(e.Err) }

// Unwrap gives what happened.
func (e *NoAnswerError) Unwrap() error { return e.Err }

// Take takes keys of one database one by one. If it can't take one, it takes none, and returns
// register.ErrHeld.
func (s *Server) Take(ctx context.Context, db int, keys, tokens []string, ttl time.Duration) error {
	var taken []func()
	for i, key := range keys {
		undo := func(got cell.Answer) func() {
			said := time.Now()
			return func() {
				if got.Did {
					s.undo(db, key, tokens[i], ttl, said)
				}
			}
		}
		got, err := s.ask(ctx, db, take{key, tokens[i], ttl}, func(late cell.Answer) { undo(late)() })
		if err == nil && !got.Did {
			err = register.ErrHeld
		}
		if err != nil {
			for _, undo := range taken {
				undo()
			}
			return err
		}
		taken = append(taken, undo(got))
	}
	return nil
}

// undo removes what an attempt created there, as its answer said by then.
func (s *Server) undo(db int, key, token string, ttl time.Duration, said time.Time) {
	if u, ok := undoAfter(time.Since(said), key, token, ttl); ok {
		s.Tell(db, u, false)
	}
}

// undoAfter is the undo of an attempt of which the answer came that long ago; there is none once
// it is over by itself. What has more time left than it can have is another's with the same value.
func undoAfter(passed time.Duration, key, token string, ttl time.Duration) (u undo, ok bool) {
	if ttl < 0 {
		return undo{key, token, ttl}, true
	}
	most := ttl - passed + time.Millisecond
	return undo{key, token, most}, most > 0
}

// Withdraw removes a key that holds the token, in the background.
func (s *Server) Withdraw(db int, key, token string) { s.Tell(db, remove{key, token}, false) }

// Release removes a key that holds the token, and reports whether it did.
func (s *Server) Release(ctx context.Context, db int, key, token string) (did bool, err error) {
	got, err := s.ask(ctx, db, remove{key, token}, nil)
	return got.Did, err
}

// Extend gives a key that holds the token a longer time, if the one that it has is not longer,
// and reports whether it holds the token.
func (s *Server) Extend(ctx context.Context, db int, key, token string, ttl time.Duration) (did bool, err error) {
	got, err := s.ask(ctx, db, extend{key, token, ttl}, nil)
	return got.Did, err
}

// Read tells what a key holds.
func (s *Server) Read(ctx context.Context, db int, key string) (cell.Found, error) {
	got, err := s.ask(ctx, db, read{key}, nil)
	if err != nil {
		return cell.Found{}, err
	}
	return got.Found[0], nil
}

// Swap makes a decision's change if the key holds what it held, and reports whether it did.
func (s *Server) Swap(ctx context.Context, db int, key string, was cell.Found, do register.Decision) (did bool, err error) {
	got, err := s.ask(ctx, db, swap{key, was, do}, nil)
	return got.Did, err
}

// ask has the server do something. late, if it is set, is told of an answer that nothing waited
// for.
func (s *Server) ask(ctx context.Context, db int, do cell.Op, late func(cell.Answer)) (cell.Answer, error) {
	r := master.Send([]*master.Master{s.Master}, db, []cell.Op{do}, answered)
	if err := r.Wait(ctx); err != nil {
		r.Drop()
		r.Later(func(_ int, got register.Reply) {
			if late != nil && got.State == register.Counted {
				late(got.Answer)
			}
		})
		return cell.Answer{}, err
	}
	got := r.Replies()[0]
	if got.State != register.Counted {
		return cell.Answer{}, &NoAnswerError{s.Name(), got.Err}
	}
	return got.Answer, nil
}

// answered decides a round of one.
func answered(replies []register.Reply) bool { return replies[0].State != register.Waiting }

// Beside is what stands under a key of which the masters hold one thing and the legacy server
// another: its value counts, whatever the masters hold, because clients may have taken it there
// alone.
func Beside(masters register.Look, legacy cell.Found) register.Look {
	same := masters.Present && masters.Value == legacy.Value.Text
	switch {
	case legacy.Form == cell.Absent, same && !masters.Unknown:
		return masters
	case same:
		return register.Look{Present: true, Value: masters.Value, Left: legacy.Left, Version: masters.Version}
	default:
		return register.Look{Present: true, Value: legacy.Value.Text, Left: legacy.Left, Version: "legacy " + legacy.Value.Text}
	}
}
