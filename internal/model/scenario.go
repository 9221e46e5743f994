package model

import (
	"context"
	"errors"
	"fmt"
	"time"

	"redlock-proxy/quorum/cell"
	"redlock-proxy/quorum/register"
)

// Do is the kind of an operation.
type Do int

// The kinds of operations.
const (
	Lock Do = iota
	Unlock
	Extend
	GetSet // SET … GET
	SetXX  // SET … XX
	Del
	Get
	Repair // the proxy compares the masters on its own, and repairs the key
)

var doNames = [...]string{"LOCK", "UNLOCK", "EXTEND", "GETSET", "SETXX", "DEL", "GET", "MEND"}

// Op is one operation of a client.
type Op struct {
	Do Do
	// Token is the token of the lock, or the value to set.
	Token byte
	// Proxy is the number of the proxy that gets the operation, from 0.
	Proxy int
	// Short requests a lease that can expire.
	Short bool
	// After lists operations, by their numbers from 1, that must have got their replies before. If
	// Success is set, the last of them must have succeeded.
	After   []int
	Success bool
	// Fence makes a LOCK request a fence. Later fences must be higher, because each reply comes
	// while its lock is held.
	Fence bool
}

// String describes the operation.
func (o Op) String() string {
	return fmt.Sprintf("%s %c by proxy %d", doNames[o.Do], o.Token, o.Proxy+1)
}

// ttl returns the lease that an operation requests.
func (s *Scenario) ttl(o Op) time.Duration {
	if o.Short {
		return s.shortLease()
	}
	return cell.Endless
}

// Scenario is a case to explore: some concurrent operations, and the faults that may happen.
type Scenario struct {
	Name string
	// N is the number of masters.
	N int
	// Held, if not 0, means that the lock of the first operation was granted before the beginning.
	// The first Held masters hold it; the other masters have lost it.
	Held int
	// Removed means that all masters hold a removal by ballot at the beginning.
	Removed bool
	Ops     []Op
	// Retries limits how often an operation is retried because of other operations.
	Retries int
	// Keep lets ballots promise the next ballot.
	Keep bool
	// Slow limits how often more time than the limit of a round passes. Leases limits how often
	// enough time passes for short leases to expire.
	Slow, Leases int
	// Brief makes short leases expire within the limit of a round.
	Brief bool
	// Fires limits the number of callbacks.
	Fires int
	// Losses limits the number of lost replies; negative means any number.
	Losses int
	// Timeouts lets clients stop waiting at any moment.
	Timeouts bool
	// Unreachable lets proxies find that a message to a master was not sent.
	Unreachable bool
	// Restarts limits how many masters restart. They restart empty, or with their initial cells if
	// Older is set.
	Restarts int
	Older    bool
	// Change, if not nil, is a change of the masters.
	Change *Change
	// Ordered means that proxies prefer some masters to other, equal masters.
	Ordered bool
	// Calm requires that no operation gets NOQUORUM, unless other operations overtook it in each of
	// its tries, which is always possible.
	Calm bool
	Variant
}

// Variant switches mechanisms off.
type Variant struct {
	// Op changes an operation before it is sent.
	Op func(cell.Op) cell.Op
	// Apply replaces the execution of an operation on a master.
	Apply func(cell.Op, *cell.Store) cell.Answer
	// Options changes the options of the registers.
	Options func(*register.Options)
	// Hurried makes refills skip the wait for a round's time.
	Hurried bool
	// Unnoticed keeps proxies from noticing that the connection of a late reply broke.
	Unnoticed bool
	// CatchUp selects the rules of the catch-up that are left out.
	CatchUp CatchUp
}

// code is the reply to a client.
type code uint8

const (
	nothing   code = iota
	done           // OK, 1
	refused        // nil, 0
	noQuorum       // NOQUORUM
	overtaken      // NOQUORUM, because no tries are left
	contended      // not executed
	value          // a value: this code plus its token
)

func (c code) String() string {
	switch c {
	case nothing:
		return "nothing"
	case done:
		return "OK"
	case refused:
		return "nil"
	case noQuorum:
		return "NOQUORUM"
	case overtaken:
		return "NOQUORUM, overtaken"
	case contended:
		return "contended"
	default:
		return fmt.Sprintf("value %c", byte(c-value))
	}
}

// perform executes an operation as a proxy does.
func (p *proxy) perform(ctx context.Context, t *task, op Op) answer {
	a := answer{op: t.id}
	token := string(op.Token)
	var err error
	var got register.Granted
	switch op.Do {
	case Lock:
		got, err = p.register.Lock(ctx, []string{key}, register.Terms{
			Tokens: []string{token}, TTL: p.ttl(op), Fence: op.Fence,
			OnRemovalDue: func(version string, _ func() bool) { p.owe(token, version) },
		})
		a.fence = uint8(got.Fence)
		if errors.Is(err, register.ErrHeld) {
			a.dead = t.attempts
		}
		a.code = codeOf(err)
	case Unlock:
		err = p.register.Unlock(ctx, key, token, func(version string, _ time.Duration) { p.owe(token, version) })
		if err == nil {
			a.dead = t.releases
		}
		a.code = codeOf(err)
	case Extend:
		got, err = p.register.Extend(ctx, key, token, p.ttl(op))
		a.code = codeOf(err)
	case Repair:
		p.repair(ctx)
		a.code = refused
	case Get:
		var looks []register.Look
		if looks, err = p.register.Read(ctx, []string{key}); err == nil {
			a.code = codeOfLook(looks[0])
		} else {
			a.code = codeOf(err)
		}
	default:
		var out register.Outcome
		run := func(l register.Look) (register.Decision, error) {
			d := op.decide(l, p.ttl(op))
			d.Note = l
			return d, nil
		}
		out, err = p.register.Update(ctx, register.Change{Key: key, Run: run})
		got = out.Granted
		if err != nil {
			a.code = codeOf(err)
			break
		}
		a.code = codeOfLook(out.Decision.Note.(register.Look))
		if op.Do != GetSet && a.code != refused {
			a.code = done
		}
	}
	if a.code != noQuorum && a.code != overtaken && op.Short && !got.Since.IsZero() {
		a.ends = time.Duration(got.Since.UnixNano()) - epoch + p.shortLease()
	}
	return a
}

// owe schedules the removal of a version by ballot, at any later moment.
func (p *proxy) owe(token, version string) {
	p.After(0, func() {
		run := func(l register.Look) (register.Decision, error) {
			if l.Present && l.Version == version {
				return register.Decision{Do: register.Remove}, nil
			}
			return register.Decision{}, nil
		}
		_, _ = p.register.Update(context.Background(), register.Change{Key: key, Expect: &token, Run: run})
	})
}

// decide returns the decision of an operation for the value that it sees.
func (o Op) decide(l register.Look, ttl time.Duration) register.Decision {
	put := register.Decision{Do: register.Put, Value: string(o.Token), TTL: ttl}
	switch {
	case o.Do == GetSet, o.Do == SetXX && l.Present:
		return put
	case o.Do == Del && l.Present:
		return register.Decision{Do: register.Remove}
	default:
		return register.Decision{}
	}
}

func codeOfLook(l register.Look) code {
	if !l.Present {
		return refused
	}
	return value + code(l.Value[0])
}

func codeOf(err error) code {
	var none *register.NoQuorum
	switch {
	case err == nil:
		return done
	case errors.Is(err, register.ErrHeld), errors.Is(err, register.ErrNotHeld):
		return refused
	case errors.Is(err, register.ErrContended):
		return contended
	case errors.As(err, &none) && none.Overtaken:
		return overtaken
	case errors.As(err, &none), errors.Is(err, context.DeadlineExceeded):
		return noQuorum
	default:
		panic(err)
	}
}
