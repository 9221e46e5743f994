package upstream

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"redlock-proxy/quorum/availability"
)

// trials holds the trial writes that show whether locks at the upstream are available.
type trials struct {
	key string
	// enabled reports whether the locks are at the upstream.
	enabled func() bool
	// refusal is why the last trial write was refused, or nil. The upstream's mu guards it.
	refusal error
}

// EnableTrialWrites makes each probe try a write while enabled returns true. It is called before all other
// methods.
func (u *Upstream) EnableTrialWrites(key string, enabled func() bool) {
	u.trials.key, u.trials.enabled = key, enabled
}

// WriteRefusal returns why the upstream accepts no writes, or nil if no reason is known.
func (u *Upstream) WriteRefusal() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.err != nil {
		return u.err
	}
	return u.trials.refusal
}

func (u *Upstream) tryWrite(ctx context.Context) {
	var refusal error
	if u.trials.enabled() && !u.IsDown() {
		ctx, cancel := context.WithTimeout(ctx, availability.TrialTime)
		defer cancel()
		client, err := u.pool.client()
		if err == nil {
			err = client.Do(ctx, availability.Trial(u.trials.key)...).Err()
		}
		if errors.Is(err, redis.Nil) { // it wrote nothing, as intended
			err = nil
		}
		if refusal = availability.Refusal(err, u.LoginCommand() != nil); refusal != nil {
			refusal = plainCause(refusal)
		}
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.trials.refusal = refusal
}
