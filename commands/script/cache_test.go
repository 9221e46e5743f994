package script

import (
	"fmt"
	"strings"
	"sync"
	"testing"
)

func mustLoad(t *testing.T, c *Cache, body string) *Script {
	t.Helper()
	s, err := c.Load(body)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The script that was not used for longest gives way.
func TestCacheKeepsWhatIsUsed(t *testing.T) {
	c := NewCache(2, 1000)
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
	if c.Len() != 2 {
		t.Errorf("%d scripts", c.Len())
	}
	c.Flush()
	if _, ok := c.Get(one.SHA()); ok || c.Len() != 0 {
		t.Error("not flushed")
	}
	if _, err := c.Load("return +"); err == nil || c.Len() != 0 {
		t.Errorf("%v, %d scripts", err, c.Len())
	}
}

// Bodies count, and one that is too large is held as long as it is the newest.
func TestCacheIsBoundedByBytes(t *testing.T) {
	c := NewCache(100, 100)
	long := "return '" + strings.Repeat("x", 200) + "'"
	for _, step := range []struct {
		body string
		want int
	}{
		{"return 1", 1}, {"return 2", 2}, {long, 1}, {"return 3", 1}, {"return '" + strings.Repeat("y", 80) + "'", 2}, {"return 4", 2},
	} {
		if mustLoad(t, c, step.body); c.Len() != step.want {
			t.Errorf("after %.20q: %d scripts, want %d", step.body, c.Len(), step.want)
		}
	}
}

func TestCacheConcurrently(t *testing.T) {
	c := NewCache(5, 1000)
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for n := range 200 {
				body := fmt.Sprint("return ", (n*7+i)%11)
				if s, err := c.Load(body); err != nil || s.Body() != body {
					t.Errorf("%v %v", s, err)
				}
				if n%50 == 0 {
					c.Flush()
				}
			}
		})
	}
	all.Wait()
	if c.Len() > 5 {
		t.Errorf("%d scripts", c.Len())
	}
}
