package model

import (
	"context"
	"errors"
	"fmt"
	"time"

	"redlock-proxy/quorum/cell"
	"redlock-proxy/quorum/keygroup"
	"redlock-proxy/quorum/register"
)

// OpKind is the kind of an operation.
type OpKind int

// The kinds of operations.
const (
	Lock OpKind = iota
	Unlock
	Extend
	GetSet // SET … GET
	SetXX  // SET … XX
	Del
	Get
	Repair // the proxy compares the masters on its own, and repairs the key

	// LOCK, UNLOCK and EXTEND of a lock with several holders; see holders.go.
	Join
	Leave
	ExtendHolder
)

var kindNames = [...]string{
	"LOCK", "UNLOCK", "EXTEND", "GETSET", "SETXX", "DEL", "GET", "REPAIR", "JOIN", "LEAVE", "EXTEND HOLDER",
}

// Op describes one operation of a client.
type Op struct {
	Kind OpKind
	// Token is the token of the lock, or the value to set.
	Token byte
	// Proxy is the number of the proxy that gets the operation, from 0.
	Proxy int
	// ShortLease requests a lease that can expire.
	ShortLease bool
	// After lists operations, by their numbers from 1, that must have got their replies before. If
	// AfterSuccess is set, the last of them must have succeeded.
	After        []int
	AfterSuccess bool
	// Fence makes a LOCK request a fence. Later fences must be higher, because each reply comes
	// while its lock is held.
	Fence bool
	// TakesOtherKey makes a LOCK take otherKey, too, all or none.
	TakesOtherKey bool
	// Slots is the number of holders that the lock of a JOIN, LEAVE or EXTEND HOLDER may have, or
	// keygroup.Unlimited.
	Slots int
}

// String describes the operation.
func (o Op) String() string {
	return fmt.Sprintf("%s %c by proxy %d", kindNames[o.Kind], o.Token, o.Proxy+1)
}

// ttl returns the lease that an operation requests.
func (s *Scenario) ttl(o Op) time.Duration {
	if o.ShortLease {
		return s.shortLease()
	}
	return cell.NoExpiry
}

// Scenario describes a case to explore: some concurrent operations, and the faults that may happen.
type Scenario struct {
	Name string
	// N is the number of masters.
	N int
	// InitialHolders, if not 0, means that the lock of the first operation was granted before the
	// beginning. The first InitialHolders masters hold it; the other masters have lost it.
	InitialHolders int
	// InitiallyRemoved means that all masters hold a removal by ballot at the beginning.
	InitiallyRemoved bool
	Ops              []Op
	// Retries limits the number of retries of an operation that other operations overtake.
	Retries int
	// KeepPromises lets a ballot also make the masters promise the next ballot.
	KeepPromises bool
	// SlowTicks limits the number of clock steps of a slowTick, which exceeds the limit of a round.
	// LeaseTicks limits the number of clock steps of a leaseTick, in which short leases expire.
	SlowTicks, LeaseTicks int
	// BriefLeases makes short leases expire within the limit of a round.
	BriefLeases bool
	// Callbacks limits the number of callbacks.
	Callbacks int
	// Losses limits the number of lost replies; negative means any number.
	Losses int
	// OtherKeyTaken limits how often a master refuses a LOCK with TakesOtherKey because otherKey is
	// not free. No client holds otherKey, so nil is no correct reply to such a LOCK.
	OtherKeyTaken int
	// Timeouts lets clients stop waiting at any moment.
	Timeouts bool
	// Unreachable lets proxies find that a message to a master was not sent.
	Unreachable bool
	// Restarts limits the number of restarts. Masters restart empty, or with their initial cells if
	// RestartWithOlderCells is set.
	Restarts              int
	RestartWithOlderCells bool
	// Change, if not nil, is a change of the masters.
	Change *Change
	// PreferSomeMasters means that proxies prefer some masters to other, equal masters.
	PreferSomeMasters bool
	// RequireQuorum requires that no operation gets NOQUORUM, unless other operations overtook all
	// of its tries. The latter is always possible.
	RequireQuorum bool
	Variant
}

// Variant switches mechanisms off.
type Variant struct {
	// ChangeOp changes an operation before the proxy sends it.
	ChangeOp func(cell.Op) cell.Op
	// Apply replaces the execution of an operation on a master.
	Apply func(cell.Op, *cell.Store) cell.Answer
	// Options changes the options of the registers.
	Options func(*register.Options)
	// OpenHolders replaces the decoding of the holders of a lock.
	OpenHolders func(register.Snapshot) (*keygroup.Holders, error)
	// ExtraSlots is added to the number of slots of a lock.
	ExtraSlots int
	// SkipRefillWait makes refills skip the wait for a round's time.
	SkipRefillWait bool
	// IgnoreBreaks keeps proxies from noticing that the connection of a late reply broke.
	IgnoreBreaks bool
	// CatchUp selects the rules of the catch-up that are left out.
	CatchUp CatchUp
}

// code represents the reply to a client.
type code uint8

const (
	noReply         code = iota
	okReply              // OK, 1
	refusedReply         // nil, 0
	noQuorum             // NOQUORUM
	outOfTriesReply      // NOQUORUM, because no tries are left
	contendedReply       // not executed
	valueBase            // this code plus the token of the value
)

func (c code) String() string {
	switch c {
	case noReply:
		return "nothing"
	case okReply:
		return "OK"
	case refusedReply:
		return "nil"
	case noQuorum:
		return "NOQUORUM"
	case outOfTriesReply:
		return "NOQUORUM, overtaken"
	case contendedReply:
		return "contended"
	default:
		return fmt.Sprintf("value %c", byte(c-valueBase))
	}
}

// perform executes an operation as a proxy does.
func (p *proxy) perform(ctx context.Context, t *task, op Op) clientReply {
	a := clientReply{op: t.id}
	token := string(op.Token)
	var err error
	var grant register.GrantedLock
	switch op.Kind {
	case Lock:
		keys, tokens := []string{key}, []string{token}
		if op.TakesOtherKey {
			keys, tokens = append(keys, otherKey), append(tokens, token)
		}
		grant, err = p.register.Lock(ctx, keys, register.TakeOptions{
			Tokens: tokens, TTL: p.ttl(op), Fence: op.Fence,
			OnRemovalDue: func(version string, _ func() bool) { p.scheduleRemoval(token, version) },
		})
		a.fence = uint8(grant.Fence)
		if errors.Is(err, register.ErrHeld) {
			a.deadAttempts = t.attempts
		}
		a.code = codeOf(err)
	case Unlock:
		err = p.register.Unlock(ctx, key, token, func(version string, _ time.Duration) { p.scheduleRemoval(token, version) })
		if err == nil {
			a.deadAttempts = t.releases
		}
		a.code = codeOf(err)
	case Extend:
		grant, err = p.register.Extend(ctx, key, token, p.ttl(op))
		a.code = codeOf(err)
	case Join:
		grant, err = p.join(ctx, op)
		if errors.Is(err, register.ErrHeld) {
			a.deadAttempts = t.attempts
		}
		a.code = codeOf(err)
	case Leave:
		a.code = codeOf(p.leave(ctx, op))
	case ExtendHolder:
		grant, err = p.extendHolder(ctx, op)
		a.code = codeOf(err)
	case Repair:
		p.repair(ctx)
		a.code = refusedReply
	case Get:
		var reads []register.Snapshot
		if reads, err = p.register.Read(ctx, []string{key}); err == nil {
			a.code = codeOfSnapshot(reads[0])
		} else {
			a.code = codeOf(err)
		}
	default:
		var outcome register.Outcome
		run := func(l register.Snapshot) (register.Decision, error) {
			d := op.decide(l, p.ttl(op))
			d.Note = l
			return d, nil
		}
		outcome, err = p.register.Update(ctx, register.Change{Key: key, Run: run})
		grant = outcome.GrantedLock
		if err != nil {
			a.code = codeOf(err)
			break
		}
		a.code = codeOfSnapshot(outcome.Decision.Note.(register.Snapshot))
		if op.Kind != GetSet && a.code != refusedReply {
			a.code = okReply
		}
	}
	if a.code != noQuorum && a.code != outOfTriesReply && op.ShortLease && !grant.LeaseStart.IsZero() {
		a.expiry = time.Duration(grant.LeaseStart.UnixNano()) - scenarioStart + p.shortLease()
	}
	return a
}

// scheduleRemoval schedules the removal of a version by ballot, which happens at any later moment.
func (p *proxy) scheduleRemoval(token, version string) {
	p.RunAfter(0, func() {
		run := func(l register.Snapshot) (register.Decision, error) {
			if l.Present && l.Version == version {
				return register.Decision{Action: register.Remove}, nil
			}
			return register.Decision{}, nil
		}
		_, _ = p.register.Update(context.Background(), register.Change{Key: key, ExpectedValue: &token, Run: run})
	})
}

// decide returns the decision of an operation for the value that it reads.
func (o Op) decide(l register.Snapshot, ttl time.Duration) register.Decision {
	put := register.Decision{Action: register.Put, Value: string(o.Token), TTL: ttl}
	switch {
	case o.Kind == GetSet, o.Kind == SetXX && l.Present:
		return put
	case o.Kind == Del && l.Present:
		return register.Decision{Action: register.Remove}
	default:
		return register.Decision{}
	}
}

func codeOfSnapshot(l register.Snapshot) code {
	if !l.Present {
		return refusedReply
	}
	return valueBase + code(l.Value[0])
}

func codeOf(err error) code {
	var noQuorumErr *register.NoQuorum
	switch {
	case err == nil:
		return okReply
	case errors.Is(err, register.ErrHeld), errors.Is(err, register.ErrNotHeld):
		return refusedReply
	case errors.Is(err, register.ErrContended):
		return contendedReply
	case errors.As(err, &noQuorumErr) && noQuorumErr.Overtaken:
		return outOfTriesReply
	case errors.As(err, &noQuorumErr), errors.Is(err, context.DeadlineExceeded):
		return noQuorum
	default:
		panic(err)
	}
}
