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

// held counts the scripts with these bodies that the cache has.
func held(c *Cache, bodies ...string) (n int) {
	for _, body := range bodies {
		if _, ok := c.Get(SHA(body)); ok {
			n++
		}
	}
	return n
}

// TestCacheKeepsWhatIsUsed checks that the least recently used script is dropped first.
func TestCacheKeepsWhatIsUsed(t *testing.T) {
	c := NewCache(2 * countsFor(t, "return 1"))
	one, two := mustLoad(t, c, "return 1"), mustLoad(t, c, "return 2")
	if mustLoad(t, c, "return 1") != one {
		t.Error("compiled twice")
	}
	mustLoad(t, c, "return 3")
	if _, ok := c.Get(two.SHA()); ok {
		t.Error("the one that was not used is still there")
	}
	if s, ok := c.Get(one.SHA()); !ok || s != one {
		t.Error("the one that was used is gone")
	}
	c.Flush()
	if held(c, "return 1", "return 3") != 0 {
		t.Error("not flushed")
	}
	if _, err := c.Load(t.Context(), "return +", Share{}); err == nil || held(c, "return +") != 0 {
		t.Errorf("what does not compile is held: %v", err)
	}
}

// TestCacheIsBoundedByBytes checks that a script that is too large is kept while it is the newest.
func TestCacheIsBoundedByBytes(t *testing.T) {
	c := NewCache(2000)
	long := "return '" + strings.Repeat("x", 3000) + "'"
	var loaded []string
	for _, step := range []struct {
		body string
		want int
	}{
		{"return 1", 1}, {"return 2", 2}, {long, 1}, {"return 3", 1}, {"return '" + strings.Repeat("y", 1200) + "'", 2},
		{"return 4", 2},
	} {
		mustLoad(t, c, step.body)
		loaded = append(loaded, step.body)
		if n := held(c, loaded...); n != step.want {
			t.Errorf("after %.20q: %d scripts, want %d", step.body, n, step.want)
		}
	}
	if n := held(c, loaded...); n != 2 || c.Held() > 2000 {
		t.Errorf("%d scripts of %d bytes", n, c.Held())
	}
	c.Limit(1000)
	if n := held(c, loaded...); n != 1 || c.Held() > 1000 {
		t.Errorf("with another limit %d scripts of %d bytes", n, c.Held())
	}
}

// countsFor returns the size of a script in the cache.
func countsFor(t *testing.T, body string) int {
	t.Helper()
	s, err := compile(body)
	if err != nil {
		t.Fatal(err)
	}
	return s.size()
}

func TestCacheConcurrently(t *testing.T) {
	c := NewCache(5 * countsFor(t, "return 1"))
	var bodies []string
	for n := range 11 {
		bodies = append(bodies, fmt.Sprint("return ", n))
	}
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
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
	all.Wait()
	if n := held(c, bodies...); n > 5 {
		t.Errorf("%d scripts", n)
	}
}

// TestCacheCountsWhatScriptsCompileTo checks that the cache counts the compiled form of a script.
func TestCacheCountsWhatScriptsCompileTo(t *testing.T) {
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
		if held := heap() - before; held > s.size() {
			t.Errorf("%q: %d bytes, counted as %d", piece, held, s.size())
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
