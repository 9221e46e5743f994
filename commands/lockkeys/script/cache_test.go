package script

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"redlock-proxy/internal/redistest"
)

func mustLoad(t *testing.T, c *Cache, body string) *Script {
	t.Helper()
	s, err := c.Load(context.Background(), body, Share{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// countCached counts the scripts with these bodies that the cache has.
func countCached(c *Cache, bodies ...string) (n int) {
	for _, body := range bodies {
		if _, ok := c.Get(SHA(body)); ok {
			n++
		}
	}
	return n
}

// TestCacheEviction checks that the cache drops the least recently used script first.
func TestCacheEviction(t *testing.T) {
	c := NewCache(2 * cachedSize(t, "return 1"))
	first, second := mustLoad(t, c, "return 1"), mustLoad(t, c, "return 2")
	if mustLoad(t, c, "return 1") != first {
		t.Error("compiled twice")
	}
	mustLoad(t, c, "return 3")
	if _, ok := c.Get(second.SHA()); ok {
		t.Error("the unused script is still cached")
	}
	if s, ok := c.Get(first.SHA()); !ok || s != first {
		t.Error("the used script is not cached")
	}
	c.Flush()
	if countCached(c, "return 1", "return 3") != 0 {
		t.Error("not flushed")
	}
	if _, err := c.Load(t.Context(), "return +", Share{}); err == nil || countCached(c, "return +") != 0 {
		t.Errorf("a script that does not compile is cached: %v", err)
	}
}

// TestCacheByteLimit checks that the cache does not keep a script that is larger than its
// limit, and evicts no other script for it.
func TestCacheByteLimit(t *testing.T) {
	c := NewCache(2000)
	long := "return '" + strings.Repeat("x", 3000) + "'"
	var loadedBodies []string
	for _, step := range []struct {
		body string
		want int
	}{
		{"return 1", 1}, {"return 2", 2}, {long, 2}, {"return '" + strings.Repeat("y", 1200) + "'", 2}, {long, 2},
		{"return 4", 2},
	} {
		mustLoad(t, c, step.body)
		loadedBodies = append(loadedBodies, step.body)
		if n := countCached(c, loadedBodies...); n != step.want {
			t.Errorf("after %.20q: %d scripts, want %d", step.body, n, step.want)
		}
	}
	if n := countCached(c, loadedBodies...); n != 2 || c.Bytes() > 2000 {
		t.Errorf("%d scripts of %d bytes", n, c.Bytes())
	}
	c.Limit(1000)
	if n := countCached(c, loadedBodies...); n != 1 || c.Bytes() > 1000 {
		t.Errorf("after Limit: %d scripts of %d bytes", n, c.Bytes())
	}
}

// cachedSize returns the size of a script in the cache.
func cachedSize(t *testing.T, body string) int {
	t.Helper()
	s, err := compile(body)
	if err != nil {
		t.Fatal(err)
	}
	return s.size()
}

func TestConcurrentCache(t *testing.T) {
	c := NewCache(5 * cachedSize(t, "return 1"))
	var bodies []string
	for n := range 11 {
		bodies = append(bodies, fmt.Sprint("return ", n))
	}
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for n := range 200 {
				body := bodies[(n*7+i)%len(bodies)]
				if s, err := c.Load(context.Background(), body, Share{}); err != nil || s.Body() != body {
					t.Errorf("%v %v", s, err)
				}
				if n%50 == 0 {
					c.Flush()
				}
			}
		})
	}
	wg.Wait()
	if n := countCached(c, bodies...); n > 5 {
		t.Errorf("%d scripts", n)
	}
}

// TestCompiledSize checks that the cache counts the compiled form of a script.
func TestCompiledSize(t *testing.T) {
	redistest.SkipShort(t)
	for _, piece := range []string{"x=1 ", "a()", "f'' ", "a=a+a+a ", "a.b.c.d=1 ", "a={1,1,1,1,1} ", "f(a,a,a,a,a,a) ",
		"a=-a ", "if redis.call('get',KEYS[1]) == ARGV[1] then redis.call('del',KEYS[1]) end "} {
		body := strings.Repeat(piece, 100_000/len(piece))
		before := heap()
		s, err := compile(body)
		if err != nil {
			t.Fatal(err)
		}
		s.Calls()
		if memory := heap() - before; memory > s.size() {
			t.Errorf("%q: %d bytes, counted as %d", piece, memory, s.size())
		}
		runtime.KeepAlive(body)
	}
}

// heap returns the bytes of reachable memory.
func heap() int {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}
