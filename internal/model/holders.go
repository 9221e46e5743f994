package model

import (
	"context"
	"errors"
	"time"

	"redlock-proxy/quorum/keygroup"
	"redlock-proxy/quorum/register"
)

// This file makes the changes of a lock with several holders as package quorum does: the first
// holder takes the key like an exclusive lock, and further holders change it by ballots.

// join takes a lock that several clients may hold.
func (p *proxy) join(ctx context.Context, op Op) (register.GrantedLock, error) {
	token := string(op.Token)
	onRemovalDue := func(version string, _ func() bool) { p.scheduleLeave(token, version) }
	got, err := p.register.Lock(ctx, []string{key}, register.TakeOptions{
		Tokens: []string{keygroup.LoneHolder(token, op.Slots)}, TTL: p.ttl(op), OnRemovalDue: onRemovalDue,
	})
	if !refusedByHolders(err) {
		return got, err
	}
	return p.changeHolders(ctx, onRemovalDue, func(h *keygroup.Holders) error {
		slots := op.Slots
		if slots > 0 {
			slots += p.ExtraSlots
		}
		if h.Slots() == op.Slots && slots != op.Slots && len(h.Tokens()) < slots {
			h.Put("h"+token, "2", p.ttl(op))
			return nil
		}
		return h.Join(token, op.Slots, p.ttl(op))
	})
}

// leave releases a lock that several clients may hold.
func (p *proxy) leave(ctx context.Context, op Op) error {
	token := string(op.Token)
	scheduleLeave := func(version string, _ time.Duration) { p.scheduleLeave(token, version) }
	err := p.register.Unlock(ctx, key, keygroup.LoneHolder(token, op.Slots), scheduleLeave)
	if !refusedByHolders(err) {
		return err
	}
	_, err = p.changeHolders(ctx, nil, func(h *keygroup.Holders) error { return h.Leave(token) })
	return err
}

// extendHolder extends a lock that several clients may hold.
func (p *proxy) extendHolder(ctx context.Context, op Op) (register.GrantedLock, error) {
	token := string(op.Token)
	got, err := p.register.Extend(ctx, key, keygroup.LoneHolder(token, op.Slots), p.ttl(op))
	if !refusedByHolders(err) {
		return got, err
	}
	return p.changeHolders(ctx, nil, func(h *keygroup.Holders) error {
		_, err := h.Extend(token, p.ttl(op))
		return err
	})
}

// refusedByHolders reports whether the key has holders, so that a ballot decides.
func refusedByHolders(err error) bool {
	refusal, ok := errors.AsType[*register.RefusedError](err)
	return ok && keygroup.IsHolders(refusal.CurrentSnapshot.Value)
}

// changeHolders changes the holders of the lock by ballot. An error of change changes nothing.
func (p *proxy) changeHolders(
	ctx context.Context, onRemovalDue func(string, func() bool), change func(*keygroup.Holders) error,
) (register.GrantedLock, error) {
	open := keygroup.OpenHolders
	if p.OpenHolders != nil {
		open = p.OpenHolders
	}
	versions := []string{}
	scheduleAll := func(cell string, mayArrive func() bool) {
		onRemovalDue(cell, mayArrive)
		for _, version := range versions {
			onRemovalDue(version, mayArrive)
		}
	}
	if onRemovalDue == nil {
		scheduleAll = nil
	}
	out, err := p.register.Update(ctx, register.Change{
		Key: key, OnRemovalDue: scheduleAll,
		Run: func(l register.Snapshot) (register.Decision, error) {
			h, err := open(l)
			if err != nil {
				return register.Decision{}, err
			}
			refusal := change(h)
			version := string(p.source.Change())
			versions = append(versions, version)
			d, err := h.Encode(version)
			d.Note, d.RemoveOnError = refusal, onRemovalDue != nil
			return d, err
		},
	})
	if refusal, isRefused := out.Decision.Note.(error); err == nil && isRefused {
		err = refusal
	}
	return out.GrantedLock, err
}

// scheduleLeave schedules the removal of a version of a holder by ballot.
func (p *proxy) scheduleLeave(token, version string) {
	p.RunAfter(0, func() {
		_, _ = p.changeHolders(context.Background(), nil, func(h *keygroup.Holders) error {
			if h.Holder(token).Version != version {
				return register.ErrNotHeld
			}
			return h.Leave(token)
		})
	})
}
