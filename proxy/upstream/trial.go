package upstream

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"redlock-proxy/quorum/availability"
)

// trials holds the trial writes that show whether locks at the upstream are available.
type trials struct {
	key string
	// enabled reports whether the locks are at the upstream.
	enabled func() bool
	// refusal is the reason why the last trial write was refused, or nil. The upstream's mu guards
	// it.
	refusal error
	// A value in trialRequested makes runTrials try a write immediately.
	trialRequested chan struct{}
}

// trialInterval is the time between two trial writes.
const trialInterval = 2 * time.Second

// EnableTrialWrites makes Run try writes while enabled returns true. It must be called before all
// other methods.
func (u *Upstream) EnableTrialWrites(key string, enabled func() bool) {
	u.trials.key, u.trials.enabled = key, enabled
}

// WriteRefusal returns the reason why the upstream accepts no writes, or nil if none is known.
func (u *Upstream) WriteRefusal() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.err != nil {
		return u.err
	}
	return u.trials.refusal
}

// wake makes a trial write start immediately, because the upstream may be another server now.
func (t *trials) wake() {
	select {
	case t.trialRequested <- struct{}{}:
	default:
	}
}

// runTrials tries writes until ctx ends. Trial writes do not wait for a probe, which may take
// longer than a client waits for a lock.
func (u *Upstream) runTrials(ctx context.Context) {
	tick := time.Tick(trialInterval)
	for {
		u.tryWrite(ctx)
		select {
		case <-ctx.Done():
			return
		case <-u.trials.trialRequested:
		case <-tick:
		}
	}
}

func (u *Upstream) tryWrite(ctx context.Context) {
	term := u.Term()
	var refusal error
	if u.trials.enabled() && !u.IsDown() {
		refusal = u.askTrial(ctx)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if term == u.Term() { // otherwise the result is about an earlier server
		u.trials.refusal = refusal
	}
}

// askTrial sends a trial write, and returns the reason why it was refused, or nil.
func (u *Upstream) askTrial(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, availability.TrialTime)
	defer cancel()
	client, err := u.pool.client()
	if err == nil {
		err = client.Do(ctx, availability.TrialCommand(u.trials.key)...).Err()
	}
	if errors.Is(err, redis.Nil) { // the trial wrote nothing, as intended
		err = nil
	}
	if refusal := availability.Refusal(err, u.LoginCommand() != nil); refusal != nil {
		return plainCause(refusal)
	}
	return nil
}
