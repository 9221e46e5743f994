package model

import (
	"context"
	"errors"
	"fmt"
	"time"

	"redlock-proxy/quorum/cell"
	"redlock-proxy/quorum/register"
)

// Do is what a client asks for.
type Do int

const (
	Lock Do = iota
	Unlock
	Extend
	GetSet // SET … GET
	SetXX  // SET … XX
	Del
	Get
	Mend // a proxy sees that masters differ
)

var doNames = [...]string{"LOCK", "UNLOCK", "EXTEND", "GETSET", "SETXX", "DEL", "GET", "MEND"}

// Op is one operation of a client.
type Op struct {
	Do Do
	// Token is the lock's, or the value to set.
	Token byte
	// Proxy is the one that is asked, by its number from 0.
	Proxy int
	// Short is a lease that may end.
	Short bool
	// After are operations, by their numbers from 1, that were answered before; with
	// Success the last of them was done.
	After   []int
	Success bool
	// Fence has a LOCK ask for a fence. What is told later must be higher: each is told while its
	// lock is held.
	Fence bool
}

func (o Op) String() string {
	return fmt.Sprintf("%s %c by proxy %d", doNames[o.Do], o.Token, o.Proxy+1)
}

// ttl is the lease that an operation asks for.
func (s *Scenario) ttl(o Op) time.Duration {
	if o.Short {
		return s.shortLease()
	}
	return cell.Endless
}

// Scenario is what is tried: some operations at once, and what may go wrong beside them.
type Scenario struct {
	Name string
	// N masters.
	N int
	// Held, if it is set, is the number of masters that hold the lock of the first
	// operation at the beginning, which was granted; those beyond lost it.
	Held int
	// Removed: at the beginning all masters hold that nothing is there, as after a removal by
	// ballot.
	Removed bool
	Ops     []Op
	// Retries is how often an operation is tried again because of others.
	Retries int
	// Keep lets ballots promise the next one.
	Keep bool
	// Slow and Leases are how often time may pass: longer than a round may take, and so
	// long that short leases end.
	Slow, Leases int
	// Brief leases end within the time that a round may take.
	Brief bool
	// Fires is how many callbacks may come.
	Fires int
	// Losses is how many answers may be lost, or negative for any number.
	Losses int
	// Timeouts: clients may wait no longer, at any moment.
	Timeouts bool
	// Unreachable masters may be known not to have been asked.
	Unreachable bool
	// Restarts is how many masters may restart; Older with what they held at the
	// beginning instead of empty.
	Restarts int
	Older    bool
	// Change, if it is set, is a change of the masters.
	Change *Change
	// Ordered is set where proxies prefer one of the masters to others that stand alike.
	Ordered bool
	// Calm asks that no operation is told NOQUORUM, but for those that others overtook in
	// each of their tries: there always is such an order.
	Calm bool
	Variant
}

// Variant switches a mechanism off.
type Variant struct {
	// Op alters an operation before it is sent.
	Op func(cell.Op) cell.Op
	// Apply is what a master does instead.
	Apply func(cell.Op, *cell.Store) cell.Answer
	// Options alters those of the registers.
	Options func(*register.Options)
	// Hurried has refills not wait for a round's time.
	Hurried bool
	// Unnoticed has proxies not notice where the connection broke on which a late answer would
	// come.
	Unnoticed bool
	// CatchUp are rules of catching up that are left out.
	CatchUp CatchUp
}

// code is what a client was told.
type code uint8

const (
	nothing   code = iota
	done           // OK, 1
	refused        // nil, 0
	noQuorum       // NOQUORUM
	overtaken      // NOQUORUM, for want of further tries
	contended      // not carried out
	value          // a value: value + its token
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

// perform carries out an operation as a proxy does.
func (p *proxy) perform(ctx context.Context, t *task, op Op) answer {
	a := answer{op: t.id}
	token := string(op.Token)
	var err error
	var got register.Granted
	switch op.Do {
	case Lock:
		got, err = p.register.Lock(ctx, []string{key}, register.Terms{Tokens: []string{token}, TTL: p.ttl(op), Fence: op.Fence, Owed: func(version string, _ func() bool) { p.owe(token, version) }})
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
	case Mend:
		p.mend(ctx)
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
		out, err = p.register.Update(ctx, register.Change{Key: key, Run: func(l register.Look) (register.Decision, error) {
			d := op.decide(l, p.ttl(op))
			d.Note = l
			return d, nil
		}})
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

// owe has a version removed by ballot at any later moment.
func (p *proxy) owe(token, version string) {
	p.After(0, func() {
		_, _ = p.register.Update(context.Background(), register.Change{Key: key, Expect: &token, Run: func(l register.Look) (register.Decision, error) {
			if l.Present && l.Version == version {
				return register.Decision{Do: register.Remove}, nil
			}
			return register.Decision{}, nil
		}})
	})
}

// decide is what an operation makes of what it sees.
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
