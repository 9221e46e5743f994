//go:build integration

package lua

import (
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"redlock-proxy/internal/lua/meter"
	"redlock-proxy/internal/redistest"
)

// startRedis starts a redis-server for the test, and returns a client of it.
func startRedis(t *testing.T) *redis.Client {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: redistest.New(t, redistest.Options{}).Addr()})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// TestExamplesAsInRedis: a real redis-server gives the results that the examples expect.
func TestExamplesAsInRedis(t *testing.T) {
	client := startRedis(t)
	show := strings.Replace(showSource, "SOURCE", "ARGV[1]", 1)
	for area, list := range examples {
		for _, e := range list {
			theirs, err := client.Eval(t.Context(), show, nil, e.chunk()).Text()
			if err != nil {
				t.Errorf("%s: %s: %v", area, e.source, err)
			} else if theirs = withoutAddresses(theirs); theirs != e.want {
				t.Errorf("%s: %s\nthere %s\n here %s", area, e.source, theirs, e.want)
			}
		}
	}
}

// TestMemoryAsInRedis: the memory in use at the beginning of a run is about the same as in Redis.
func TestMemoryAsInRedis(t *testing.T) {
	theirs, err := startRedis(t).Eval(t.Context(), "return gcinfo()", nil).Int()
	ours, _ := run(t, "return gcinfo()", meter.Limits{})
	if n, _ := ours.(float64); err != nil || int(n) < theirs/2 || int(n) > theirs*2 {
		t.Errorf("%v KB, there %d (%v)", ours, theirs, err)
	}
}
