package quorum

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
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
	f.read(ctx, t.client(0))
	f.judge()
	return f
}

// read asks for what the server says of itself.
func (f *Finding) read(ctx context.Context, client *redis.Client) {
	info := map[string]string{}
	text, err := client.Info(ctx).Result()
	if err != nil {
		f.Err = fmt.Errorf("INFO: %s", causeText(err))
		return
	}
	for _, line := range strings.Split(text, "\r\n") {
		name, value, _ := strings.Cut(line, ":")
		info[name] = value
	}
	f.Version, f.Role, f.Policy, f.runID = info["redis_version"], info["role"], info["maxmemory_policy"], info["run_id"]
	if info["aof_enabled"] == "0" {
		f.Appendfsync = "off"
		return
	}
	if set, err := client.ConfigGet(ctx, "appendfsync").Result(); err == nil {
		f.Appendfsync = set["appendfsync"]
	}
}

// judge weighs what was read.
func (f *Finding) judge() {
	if f.Err != nil {
		return
	}
	if f.Role != "" && f.Role != "master" {
		f.Unsafe = append(f.Unsafe, "it is a replica: a lock there is gone with its next synchronisation")
	}
	if f.Policy != "" && f.Policy != "noeviction" {
		f.Unsafe = append(f.Unsafe, "maxmemory-policy "+f.Policy+" may evict a lock: set noeviction")
	}
	if f.Appendfsync != "always" {
		f.Weak = append(f.Weak, "forgets locks when it restarts: without appendonly yes and appendfsync always")
	}
}

// sameServer marks masters that are one server under two addresses.
func sameServer(findings []Finding) {
	seen := map[string]string{}
	for i := range findings {
		f := &findings[i]
		if f.runID == "" {
			continue
		}
		if other, twice := seen[f.runID]; twice {
			f.Unsafe = append(f.Unsafe, "it is the same server as "+other)
		}
		seen[f.runID] = f.Name
	}
}
