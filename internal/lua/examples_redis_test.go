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

// TestExamplesAsInRedis checks that a real redis-server returns the results that the examples
// expect.
func TestExamplesAsInRedis(t *testing.T) {
	client := startRedis(t)
	show := strings.Replace(exampleTemplate, "SOURCE", "ARGV[1]", 1)
	for area, list := range examples {
		for _, e := range list {
			redisResult, err := client.Eval(t.Context(), show, nil, e.chunk()).Text()
			if err != nil {
				t.Errorf("%s: %s: %v", area, e.source, err)
			} else if redisResult = withoutAddresses(redisResult); redisResult != e.want {
				t.Errorf("%s: %s\nredis %s\n want %s", area, e.source, redisResult, e.want)
			}
		}
	}
}

// TestMemoryAsInRedis checks that the memory in use when a run begins is about the same as in
// Redis.
func TestMemoryAsInRedis(t *testing.T) {
	redisKB, err := startRedis(t).Eval(t.Context(), "return gcinfo()", nil).Int()
	memory, _ := run(t, "return gcinfo()", meter.Limits{})
	if n, _ := memory.(float64); err != nil || int(n) < redisKB/2 || int(n) > redisKB*2 {
		t.Errorf("%v KB, redis %d (%v)", memory, redisKB, err)
	}
}
