// Package fakeregister imitates the register of the masters, for tests.
package fakeregister

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"redlock-proxy/quorum"

	"github.com/hashicorp/go-multierror"
)

// Register imitates a majority of the masters with a map. Its locks never expire.
type Register struct {
	// Entries maps present keys to their entries.
	Entries map[quorum.Key]Entry
	// RoundErr is the error of every round.
	RoundErr error
	// BeforeRound runs before each round, and gets the round's number, from 1.
	BeforeRound func(round int)
	// ConcurrentChange, if not nil, runs once, after an update's function and before its decision
	// applies. It acts as another client that changes the key at the same time.
	ConcurrentChange func()
	// OnWait holds events, as functions that run one after the other while a client waits. If
	// HasPredecessors is set, other clients precede this client in the queues of all keys until the
	// first event.
	OnWait          []func()
	HasPredecessors bool
	// BallotPromised is set if masters have already promised the next ballot of each key. Then an
	// update first runs its function without the remaining time of the value.
	BallotPromised bool
	// guesses maps each key to its last known token or value.
	guesses map[quorum.Key]string
	// Rounds lists the rounds so far.
	Rounds []string
	// WithdrawnKeys lists the keys of all calls of Withdraw. Rounds does not list these calls.
	WithdrawnKeys []quorum.Key

	versions int
}

// Entry holds the value of a key, its remaining time and its version.
type Entry struct {
	value     string
	remaining time.Duration
	version   string
}

// NewRegister returns an empty register.
func NewRegister() *Register {
	return &Register{Entries: map[quorum.Key]Entry{}, guesses: map[quorum.Key]string{}}
}

// ErrTooFewMasters returns the error of a round when three of five masters refuse connections.
func ErrTooFewMasters() error {
	causes := &multierror.Error{ErrorFormat: func([]error) string { return "connection refused" }}
	for range 3 {
		causes = multierror.Append(causes, errors.New("connection refused"))
	}
	return &quorum.NoQuorumError{Masters: 5, VoteCount: 2, Causes: causes}
}

func (f *Register) beginRound(format string, args ...any) error {
	f.Rounds = append(f.Rounds, fmt.Sprintf(format, args...))
	if f.BeforeRound != nil {
		f.BeforeRound(len(f.Rounds))
	}
	return f.RoundErr
}

func (f *Register) read(key quorum.Key) quorum.Snapshot {
	h, exists := f.Entries[key]
	if !exists {
		return quorum.Snapshot{}
	}
	return quorum.Snapshot{Present: true, Value: h.value, TimeLeft: h.remaining, Version: h.version}
}

// nextVersion begins a new change and returns the version of its values.
func (f *Register) nextVersion() string {
	f.versions++
	return f.version()
}

func (f *Register) version() string { return fmt.Sprint("v", f.versions) }

func (f *Register) set(key quorum.Key, value string, remaining time.Duration) {
	f.Entries[key] = Entry{value, remaining, f.version()}
}

// Read imitates the method of *quorum.Cluster.
func (f *Register) Read(_ context.Context, keys []quorum.Key) ([]quorum.Snapshot, error) {
	if err := f.beginRound("read %v", keyNames(keys)); err != nil {
		return nil, err
	}
	values := make([]quorum.Snapshot, len(keys))
	for i, key := range keys {
		values[i] = f.read(key)
	}
	return values, nil
}

// Watch imitates the method of *quorum.Cluster.
func (f *Register) Watch(ctx context.Context, keys []quorum.Key) ([]quorum.Snapshot, error) {
	return f.Read(ctx, keys)
}

// Take imitates the method of *quorum.Cluster.
func (f *Register) Take(_ context.Context, t quorum.TakeRequest) (quorum.GrantedLock, error) {
	var entries []string
	for i := range t.Keys {
		entries = append(entries, keyNames(t.Keys[i:i+1])+" "+entryText(t.Tokens[i], t.TTL))
	}
	if err := f.beginRound("take %s", strings.Join(entries, ", ")); err != nil {
		return quorum.GrantedLock{}, err
	}
	for _, key := range t.Keys {
		if l := f.read(key); l.Present {
			l.TimeLeftUnknown, l.TimeLeft = true, 0
			return quorum.GrantedLock{}, &quorum.RefusedError{Err: quorum.ErrHeld, CurrentSnapshot: l}
		}
	}
	got := quorum.GrantedLock{Validity: time.Second, Version: f.nextVersion()}
	for i, key := range t.Keys {
		f.set(key, t.Tokens[i], t.TTL)
		f.guesses[key] = t.Tokens[i]
	}
	return got, nil
}

// Release imitates the method of *quorum.Cluster.
func (f *Register) Release(_ context.Context, key quorum.Key, token string) error {
	if err := f.beginRound("release %s %s", keyNames([]quorum.Key{key}), token); err != nil {
		return err
	}
	delete(f.guesses, key)
	if l := f.read(key); !l.Present || l.Value != token {
		return &quorum.RefusedError{Err: quorum.ErrNotHeld, CurrentSnapshot: l}
	}
	delete(f.Entries, key)
	return nil
}

// Withdraw imitates the method of *quorum.Cluster.
func (f *Register) Withdraw(keys []quorum.Key, got quorum.GrantedLock) {
	f.WithdrawnKeys = append(f.WithdrawnKeys, keys...)
	for _, key := range keys {
		if h, exists := f.Entries[key]; exists && h.version == got.Version {
			delete(f.Entries, key)
			delete(f.guesses, key)
		}
	}
}

// Extend imitates the method of *quorum.Cluster.
func (f *Register) Extend(
	_ context.Context, key quorum.Key, token string, ttl time.Duration,
) (quorum.GrantedLock, error) {
	if err := f.beginRound("extend %s %s", keyNames([]quorum.Key{key}), entryText(token, ttl)); err != nil {
		return quorum.GrantedLock{}, err
	}
	h, exists := f.Entries[key]
	switch {
	case ttl >= 0 && ttl < 4*time.Millisecond:
		return quorum.GrantedLock{}, quorum.ErrTooShort
	case !exists || h.value != token:
		return quorum.GrantedLock{}, &quorum.RefusedError{Err: quorum.ErrNotHeld, CurrentSnapshot: f.read(key)}
	case isLonger(h.remaining, ttl):
		return quorum.GrantedLock{Validity: time.Second, HadLongerLease: true}, nil
	}
	h.remaining = ttl
	f.Entries[key] = h
	return quorum.GrantedLock{Validity: time.Second}, nil
}

func isLonger(remaining, ttl time.Duration) bool {
	return ttl >= 0 && (remaining < 0 || remaining > ttl)
}

// Update imitates the method of *quorum.Cluster.
func (f *Register) Update(
	_ context.Context, key quorum.Key, expect *string, run func(quorum.Snapshot) (quorum.Decision, error),
) (quorum.Outcome, error) {
	expected := ""
	if expect != nil {
		expected = " if " + *expect
	}
	if err := f.beginRound("update %s%s", keyNames([]quorum.Key{key}), expected); err != nil {
		return quorum.Outcome{}, err
	}
	runs := 0
	decide := func(l quorum.Snapshot) (quorum.Decision, error) { runs++; return run(l) }
	if f.BallotPromised {
		l := f.read(key)
		l.TimeLeftUnknown, l.TimeLeft = true, 0
		if d, err := decide(l); err == nil && d.Action != quorum.NoChange {
			return f.changeOne(key, d), nil
		} else if err != nil && !errors.Is(err, quorum.ErrTTLUnknown) {
			return quorum.Outcome{}, err
		}
	}
	for {
		d, err := decide(f.read(key))
		switch {
		case err != nil:
			return quorum.Outcome{}, err
		case f.ConcurrentChange != nil:
			f.ConcurrentChange()
			f.ConcurrentChange = nil
		default:
			return f.changeOne(key, d), nil
		}
	}
}

// UpdateAll imitates the method of *quorum.Cluster.
func (f *Register) UpdateAll(
	_ context.Context, keys []quorum.Key, _ *string, run func([]quorum.Snapshot) ([]quorum.Decision, error),
) (quorum.Outcome, error) {
	if err := f.beginRound("update %s", keyNames(keys)); err != nil {
		return quorum.Outcome{}, err
	}
	for {
		values := make([]quorum.Snapshot, len(keys))
		for i, key := range keys {
			values[i] = f.read(key)
		}
		decisions, err := run(values)
		switch {
		case err != nil:
			return quorum.Outcome{}, err
		case f.ConcurrentChange != nil:
			f.ConcurrentChange()
			f.ConcurrentChange = nil
			continue
		}
		out := quorum.Outcome{Decision: decisions[0], GrantedLock: quorum.GrantedLock{Version: f.nextVersion()}}
		for i, d := range decisions {
			f.apply(keys[i], d)
		}
		return out, nil
	}
}

// changeOne applies a decision for the only key of a change, and returns the outcome.
func (f *Register) changeOne(key quorum.Key, d quorum.Decision) quorum.Outcome {
	out := quorum.Outcome{Decision: d, GrantedLock: quorum.GrantedLock{Version: f.nextVersion()}}
	f.apply(key, d)
	return out
}

// apply changes a key according to a decision.
func (f *Register) apply(key quorum.Key, d quorum.Decision) {
	switch {
	case d.Action == quorum.NoChange:
	case d.Action == quorum.Remove:
		delete(f.Entries, key)
		delete(f.guesses, key)
	default:
		left := d.TTL
		if h, exists := f.Entries[key]; d.KeepTTL {
			if left = quorum.NoExpiry; exists {
				left = h.remaining
			}
		}
		f.set(key, d.Value, left)
		f.guesses[key] = d.Value
	}
}

// Guess imitates the method of *quorum.Cluster.
func (f *Register) Guess(key quorum.Key) (string, bool) {
	token, ok := f.guesses[key]
	return token, ok
}

// Put sets the value of a key, as another client would. ms is the TTL of the value in milliseconds;
// if ms is negative, the value has no TTL.
func (f *Register) Put(key, value string, ms int) {
	left := time.Duration(ms) * time.Millisecond
	if ms < 0 {
		left = quorum.NoExpiry
	}
	f.nextVersion()
	f.set(quorum.Key{Name: key}, value, left)
}

// Remove removes a key.
func (f *Register) Remove(key string) { delete(f.Entries, quorum.Key{Name: key}) }

// TextOf returns the value of a key and its remaining milliseconds, if it expires, as text. It
// returns "." if the key is absent.
func (f *Register) TextOf(key string) string {
	h, exists := f.Entries[quorum.Key{Name: key}]
	if !exists {
		return "."
	}
	return entryText(h.value, h.remaining)
}

func entryText(value string, remaining time.Duration) string {
	if remaining < 0 {
		return value
	}
	return fmt.Sprintf("%s:%d", value, remaining.Milliseconds())
}

func keyNames(keys []quorum.Key) string {
	all := make([]string, len(keys))
	for i, k := range keys {
		all[i] = fmt.Sprintf("%d/%s", k.DB, k.Name)
	}
	return strings.Join(all, " ")
}
