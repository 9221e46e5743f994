package upstream

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"redlock-proxy/quorum/availability"
)

// trials are trial writes, by which a proxy knows whether locks at the upstream are available.
type trials struct {
	key string
	// wanted reports whether the locks are at the upstream.
	wanted func() bool
	// refusal is why the last one was refused, or nil; it is of the upstream's mu.
	refusal error
}

// TryWrites has a trial write made with each probe while that is wanted. It is called before
// anything else.
func (u *Upstream) TryWrites(key string, wanted func() bool) {
	u.trials.key, u.trials.wanted = key, wanted
}

// Writes is why the upstream takes no write, as far as is known, or nil.
func (u *Upstream) Writes() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.err != nil {
		return u.err
	}
	return u.trials.refusal
}

func (u *Upstream) try(ctx context.Context) {
	var refusal error
	if u.trials.wanted() && !u.IsDown() {
		ctx, cancel := context.WithTimeout(ctx, availability.TrialTime)
		defer cancel()
		client, err := u.own.client()
		if err == nil {
			err = client.Do(ctx, availability.Trial(u.trials.key)...).Err()
		}
		if errors.Is(err, redis.Nil) { // it wrote nothing, as it should
			err = nil
		}
		if refusal = availability.Refusal(err, u.Logins() != nil); refusal != nil {
			refusal = plainCause(refusal)
		}
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.trials.refusal = refusal
}
