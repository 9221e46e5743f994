package quorum

import (
	"context"
	"errors"
	"sync"
	"time"

	"redlock-proxy/internal/contained"
	"redlock-proxy/quorum/cell"
	"redlock-proxy/quorum/legacy"
	"redlock-proxy/quorum/register"
	"redlock-proxy/quorum/vote"
)

// What a Cluster does with a legacy server beside the masters; see package legacy.

// errLegacyChanged says that what a change was made from does not stand there any more.
var errLegacyChanged = errors.New("quorum: changed at the legacy server meanwhile")

// takeBeside takes the keys on the masters first: what is refused there leaves nothing on
// the legacy server, and of several proxies only one asks it.
func (c *generation) takeBeside(ctx context.Context, t Taking, take func() (Grant, error)) (Grant, error) {
	got, err := take()
	if err != nil {
		return Grant{}, err
	}
	db, names := t.Keys[0].DB, namesOf(t.Keys)
	if err := c.legacy.Take(ctx, db, names, t.Tokens, t.TTL); err != nil {
		c.keyspace(db).Withdraw(names, t.Tokens, got.Version)
		return Grant{}, err
	}
	return c.stillValid(got, t)
}

// stillValid is a grant as of now, when the legacy server has agreed, too.
func (c *generation) stillValid(got Grant, t Taking) (Grant, error) {
	elapsed := time.Since(got.Since)
	got.Validity = vote.Validity(t.TTL, elapsed)
	if t.Anyhow || t.TTL < 0 || got.Validity >= time.Millisecond {
		return got, nil
	}
	c.Withdraw(t.Keys, t.Tokens, got)
	return Grant{}, &register.NoQuorum{Late: elapsed}
}

// releaseBeside: clients that are not behind the proxy lock at the legacy server alone, so
// what was removed there was held.
func (c *generation) releaseBeside(ctx context.Context, key Key, token string, release func() error) error {
	var err error
	var wg sync.WaitGroup
	wg.Go(func() { err = contained.Run(release) })
	did, legacyErr := c.legacy.Release(ctx, key.DB, key.Name, token)
	wg.Wait()
	switch {
	case legacyErr != nil:
		return legacyErr
	case did && errors.Is(err, ErrNotHeld):
		return nil
	default:
		return err
	}
}

func (c *generation) extendBeside(ctx context.Context, key Key, token string, ttl time.Duration, extend func() (Grant, error)) (Grant, error) {
	got, err := extend()
	if err != nil {
		return Grant{}, err
	}
	did, err := c.legacy.Extend(ctx, key.DB, key.Name, token, ttl)
	switch {
	case err != nil:
		return Grant{}, err
	case !did:
		return Grant{}, ErrNotHeld
	}
	elapsed := time.Since(got.Since)
	if got.Validity = vote.Validity(ttl, elapsed); ttl >= 0 && got.Validity < time.Millisecond {
		return Grant{}, &register.NoQuorum{Late: elapsed}
	}
	return got, nil
}

// readBeside adds what the legacy server holds.
func (c *generation) readBeside(ctx context.Context, keys []Key, looks []Look) ([]Look, error) {
	for i, key := range keys {
		held, err := c.legacy.Read(ctx, key.DB, key.Name)
		if err != nil {
			return nil, err
		}
		looks[i] = legacy.Beside(looks[i], held)
	}
	return looks, nil
}

// updateBeside changes the legacy server first, in the midst of the masters' ballot, under
// the condition that it holds what the change was made from. From then on the change is
// made on the masters, too, or it cannot be known.
func (c *generation) updateBeside(ctx context.Context, key Key, run func(Look) (Decision, error)) (Outcome, error) {
	u := &besideUpdate{generation: c, key: key, run: run}
	for until := time.Now().Add(patience); ; {
		out, err := u.try(ctx)
		switch {
		case !errors.Is(err, errLegacyChanged):
			return out, err
		case time.Now().After(until):
			return Outcome{}, ErrContended
		}
	}
}

// besideUpdate is one Update on its way.
type besideUpdate struct {
	*generation
	key Key
	run func(Look) (Decision, error)
	// made is the decision that was carried out at the legacy server.
	made *Decision
}

func (u *besideUpdate) try(ctx context.Context) (Outcome, error) {
	held, err := u.legacy.Read(ctx, u.key.DB, u.key.Name)
	if err != nil {
		return Outcome{}, err
	}
	out, err := u.keyspace(u.key.DB).Update(ctx, register.Change{Key: u.key.Name, Run: func(l Look) (Decision, error) {
		if u.made != nil {
			return *u.made, nil
		}
		return u.make(ctx, l, held)
	}})
	var none *register.NoQuorum
	if u.made != nil && err != nil && ctx.Err() == nil && !errors.As(err, &none) {
		err = &register.NoQuorum{Unclear: true} // it is made at the legacy server
	}
	return out, err
}

// make has the change decided on what the masters and the legacy server hold, and makes it at
// the latter.
func (u *besideUpdate) make(ctx context.Context, l Look, held cell.Found) (Decision, error) {
	if l.Unknown {
		l.Left = 0
	}
	d, err := u.run(legacy.Beside(l, held))
	if err != nil || d.Do == Leave {
		return d, err
	}
	did, err := u.legacy.Swap(ctx, u.key.DB, u.key.Name, held, d)
	switch {
	case err != nil:
		return d, err
	case !did:
		return d, errLegacyChanged
	}
	u.made = &d
	return d, nil
}
