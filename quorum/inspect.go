package quorum

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Finding is what Inspect saw of one master.
type Finding struct {
	// Name is its address, without credentials.
	Name string
	// Err is why nothing more is known: it could not be asked.
	Err error
	// Version, Role and Policy are its redis_version, role and maxmemory_policy.
	Version, Role, Policy string
	// Appendfsync is its appendfsync setting, "off" where it writes no append-only
	// file, or empty where it will not say.
	Appendfsync string
	// Uptime is how long the server has been running, in whole seconds.
	Uptime time.Duration
	// Marker is what proxies have found and left on it: "votes", "unmarked" (by no proxy
	// so far), or why its votes would not count; a quarantine has lasted for Since.
	Marker string
	Since  time.Duration
	// RoundTrip is the shortest of a few.
	RoundTrip time.Duration
	// Unsafe are reasons why a lock there cannot be relied on; Weak are reasons why
	// it is less than it could be.
	Unsafe, Weak []string

	runID string
}

// Inspect connects to each master by its URL and tells what is unsafe about it.
// Each may take as long as timeout for each answer.
func Inspect(ctx context.Context, urls []string, timeout time.Duration) []Finding {
	findings := make([]Finding, len(urls))
	var wg sync.WaitGroup
	for i, u := range urls {
		wg.Go(func() { findings[i] = inspect(ctx, u, timeout) })
	}
	wg.Wait()
	sameServer(findings)
	return findings
}

func inspect(ctx context.Context, url string, timeout time.Duration) Finding {
	f := Finding{Name: masterName(url)}
	t, err := newRedisTransport(url, timeout)
	if err != nil {
		f.Err = err
		return f
	}
	defer t.close()
	if f.RoundTrip, err = t.probe(ctx); err != nil {
		f.Err = errors.New(causeText(err))
		return f
	}
	f.RoundTrip = f.RoundTrip.Round(time.Microsecond)
	v, err := t.examine(ctx)
	if err != nil {
		f.Err = errors.New(causeText(err))
		return f
	}
	f.judge(v)
	return f
}

// judge weighs what the master tells of itself.
func (f *Finding) judge(v vitals) {
	f.Version, f.Role, f.Policy, f.Appendfsync, f.Uptime = v.version, v.role, v.policy, v.appendfsync, v.uptime
	f.runID = v.runID
	f.Marker, f.Since = markerState(v)
	if why := v.unfit(); why != "" {
		f.Unsafe = append(f.Unsafe, why)
	}
	if !v.durable() {
		f.Weak = append(f.Weak, "forgets locks when it restarts: without appendonly yes and appendfsync always")
	}
	if v.runID == untold {
		f.Weak = append(f.Weak, "does not tell its run_id: a restart from older data goes unnoticed")
	}
}

// markerState is what proxies have left on a master to prove, or to deny, that it has
// all its data; and for a quarantine, since when it lasts by the master's clock.
func markerState(v vitals) (state string, since time.Duration) {
	verdict, why := judge(v, memory{})
	r, recorded := parseRecord(v.record)
	switch {
	case verdict == onTrust:
		return "votes", 0
	case verdict == onUnmarked:
		return "unmarked", 0
	case verdict == onWait && recorded:
		return "quarantine: " + r.reason.sentence(1), v.sighting.told - time.Duration(r.since)*time.Millisecond
	default:
		return "not proved: " + why.sentence(1), 0
	}
}

// sameServer marks masters that are one server under two addresses.
func sameServer(findings []Finding) {
	seen := map[string]string{}
	for i := range findings {
		f := &findings[i]
		if f.runID == "" || f.runID == untold {
			continue
		}
		if other, twice := seen[f.runID]; twice {
			f.Unsafe = append(f.Unsafe, whyTwin+other)
		}
		seen[f.runID] = f.Name
	}
}
