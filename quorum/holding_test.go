package quorum

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"
)

// names returns all names that Names lists for a database, each once.
func names(t *testing.T, c *Cluster, db int) []string {
	t.Helper()
	var foundNames []string
	err := c.Names(t.Context(), db, func(page []string) (bool, error) {
		foundNames = append(foundNames, page...)
		return true, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(foundNames)
	return slices.Compact(foundNames)
}

// TestNames checks that Names lists every lock of the database, whichever majority holds it, and
// omits the proxies' own keys.
func TestNames(t *testing.T) {
	t.Parallel()
	masters, c := startMasters(t, 3)
	if got := names(t, c, 0); len(got) != 0 {
		t.Errorf("none was taken, got %q", got)
	}
	var want []string
	for i := range 600 { // more than a page
		want = append(want, fmt.Sprintf("lock:%04d", i))
		c.mustTake(t, Key{Name: want[i]})
	}
	c.mustTake(t, Key{DB: 3, Name: "elsewhere"})
	for i, m := range masters { // each master lacks a third: any two have every lock
		for j := i; j < len(want); j += 3 {
			m.Del(want[j])
		}
	}
	if got := names(t, c, 0); !slices.Equal(got, want) {
		t.Errorf("got %d names, want %d", len(got), len(want))
	}
	if got := names(t, c, 3); !slices.Equal(got, []string{"elsewhere"}) {
		t.Errorf("database 3: %q", got)
	}
	pages := 0
	if err := c.Names(t.Context(), 0, func([]string) (bool, error) { pages++; return false, nil }); err != nil ||
		pages != 1 {
		t.Errorf("%d pages, %v", pages, err)
	}
	cause := errors.New("mine")
	if err := c.Names(t.Context(), 0, func([]string) (bool, error) { return true, cause }); err != cause {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	if err := c.Names(ctx, 0, func([]string) (bool, error) { cancel(cause); return true, nil }); err != cause {
		t.Errorf("the caller left: %v", err)
	}
}

// TestNamesWithoutAQuorum checks that Names finds a lock while one master is down, and returns an
// error while a majority is down.
func TestNamesWithoutAQuorum(t *testing.T) {
	masters, c := startMasters(t, 3)
	c.mustTake(t, job)
	masters[0].Close()
	if got := names(t, c, 0); !slices.Equal(got, []string{job.Name}) {
		t.Errorf("one is down: %q", got)
	}
	masters[1].Close()
	var noQuorum *NoQuorumError
	err := c.Names(t.Context(), 0, func([]string) (bool, error) { return true, nil })
	if !errors.As(err, &noQuorum) || noQuorum.VoteCount != 1 || len(noQuorum.Causes.Errors) != 2 {
		t.Errorf("two are down: %v", err)
	}
	holdings, err := c.Holdings(t.Context(), []Key{job})
	if err != nil || holdings[0].Status != StatusUnclear || holdings[0].Masters[2].State != "held" ||
		holdings[0].Masters[0].State == "held" {
		t.Errorf("two are down: %+v, %v", holdings, err)
	}
}

// TestRemove checks that Remove takes a lock from any holder, once, and reports the freed key.
func TestRemove(t *testing.T) {
	_, c := startMasters(t, 3)
	var freedKeys []Key
	c.onFreed = func(k Key, _ int) bool { freedKeys = append(freedKeys, k); return false }
	c.mustTake(t, job)
	for i, want := range []bool{true, false} {
		if did, err := c.Remove(t.Context(), job); did != want || err != nil {
			t.Errorf("removal %d: %v, %v", i, did, err)
		}
	}
	if !slices.Contains(freedKeys, job) {
		t.Error("nobody was told")
	}
	if err := c.Release(t.Context(), job, token); !errors.Is(err, ErrNotHeld) {
		t.Errorf("the old holder releases it: %v", err)
	}
	if _, err := c.Extend(t.Context(), job, token, time.Minute); !errors.Is(err, ErrNotHeld) {
		t.Errorf("the old holder extends it: %v", err)
	}
	var ownKeyErr *OwnKeyError
	marker := Key{Name: "redlock-proxy:marker"}
	if _, err := c.Remove(t.Context(), marker); !errors.As(err, &ownKeyErr) {
		t.Errorf("a key of the proxies': %v", err)
	}
	if _, err := c.Holdings(t.Context(), []Key{job, marker}); !errors.As(err, &ownKeyErr) {
		t.Errorf("a key of the proxies': %v", err)
	}
}
