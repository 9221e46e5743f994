package quorum

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"redlock-proxy/internal/redistest"
	"redlock-proxy/quorum/guard"
	"redlock-proxy/quorum/master"
)

// announceProxy adds an entry with the current time to the lists of proxies on some masters.
func announceProxy(t *testing.T, servers []*redistest.Server, id, entry string) {
	t.Helper()
	for _, server := range servers {
		client, err := redistest.Dial(server.Addr(), time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		now := time.Now().UnixMilli()
		if _, err := client.Do("HSET", "redlock-proxy:proxies", id, fmt.Sprint(now, " ", now, " ", entry)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestMoveWithListedProxies checks that some proxies prevent moves of the locks and changes of
// the masters, if two of three masters list them. These proxies have an earlier version, no guard,
// or different settings.
func TestMoveWithListedProxies(t *testing.T) {
	t.Parallel()
	servers, both := newMovableClusters(t)
	c := both[0]
	own, id := c.masterSet().guards.PeerIDs(), guard.NewID()
	if len(own) != 1 || own[0] != both[1].proxyID {
		t.Fatalf("other proxies are %v, want %s", own, both[1].proxyID)
	}
	for _, test := range []struct {
		name, id, entry string
		on              int
		want            string
	}{
		{"of a version whose entry cannot be read", "OLD", "3 1 - 0 0", 2, "has an earlier version"},
		{"of the last version", "LAST.2-1", "3 1 - 0 0 -", 2, "has an earlier version"},
		{"without the guard", id, "3 0 - 0 0 -", 2, "without the guard"},
		{"with other settings", id, "3 1 - 0 0 others", 2, "different lock settings"},
		{"that one master alone lists", "OLD", "3 1 - 0 0", 1, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			var moveErr error
			limit := time.Minute
			if test.want == "" {
				limit = guard.ProxyTimeout
			}
			for began := time.Now(); moveErr == nil && time.Since(began) < limit; {
				announceProxy(t, servers[:test.on], test.id, test.entry)
				time.Sleep(50 * time.Millisecond) // the proxy reads the lists once in a while
				moveErr = c.CheckMove()
			}
			if _, err := c.masterSet().guards.CheckChange(func(string) bool { return true }); (err == nil) != (test.want == "") {
				t.Errorf("the masters: %v", err)
			}
			switch {
			case test.want == "" && moveErr != nil:
				t.Errorf("it hinders: %v", moveErr)
			case test.want != "" && (moveErr == nil || !strings.Contains(moveErr.Error(), test.want)):
				t.Errorf("hindered by %v, want %q", moveErr, test.want)
			}
			c.mustCheckMove(t) // the entry has expired
		})
	}
}

// TestHoldersWithEarlierProxy checks that no client gets a lock with SHARED or SLOTS while the
// masters list a proxy of an earlier version, which could not keep the holders.
func TestHoldersWithEarlierProxy(t *testing.T) {
	t.Parallel()
	servers, both := newMovableClusters(t)
	c := both[0]
	takes := 0
	take := func(slots int) error {
		takes++
		_, err := c.Take(t.Context(), TakeRequest{Keys: []Key{{Name: fmt.Sprint("k", slots)}}, Slots: slots,
			TakeOptions: TakeOptions{Tokens: []string{fmt.Sprint("t", takes)}, TTL: time.Minute}})
		return err
	}
	for began := time.Now(); !errors.Is(take(Unlimited), ErrEarlierProxy); time.Sleep(20 * time.Millisecond) {
		announceProxy(t, servers, "LAST.2-1", "3 1 - 0 0 -")
		if time.Since(began) > time.Minute {
			t.Fatal("SHARED is not refused")
		}
	}
	if err := take(5); !errors.Is(err, ErrEarlierProxy) {
		t.Errorf("SLOTS: %v", err)
	}
	if err := take(0); err != nil {
		t.Errorf("an exclusive lock: %v", err)
	}
	c.mustCheckMove(t) // the entry has expired
	if err := take(Unlimited); err != nil {
		t.Errorf("without the earlier proxy: %v", err)
	}
}

// TestListOfDeadMaster checks that the list of a master that is down does not count.
func TestListOfDeadMaster(t *testing.T) {
	t.Parallel()
	servers, both := newMovableClusters(t)
	c := both[0]
	for began := time.Now(); c.CheckMove() == nil; time.Sleep(50 * time.Millisecond) {
		announceProxy(t, servers[1:], "OLD", "3 1 - 0 0")
		if time.Since(began) > time.Minute {
			t.Fatal("two masters list a proxy of an earlier version, and it does not hinder")
		}
	}
	if err := servers[2].Pause(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = servers[2].Continue() }()
	c.mustCheckMove(t)
	if ids := c.masterSet().guards.PeerIDs(); !slices.Equal(ids, []string{both[1].proxyID}) {
		t.Errorf("other proxies are %v", ids)
	}
}

// listedProxies returns the IDs in a master's list of proxies.
func listedProxies(t *testing.T, server *redistest.Server) (ids []string) {
	t.Helper()
	client, err := redistest.Dial(server.Addr(), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	reply, err := client.Do("HKEYS", "redlock-proxy:proxies")
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range reply.([]any) {
		ids = append(ids, fmt.Sprint(id))
	}
	return ids
}

// TestListOfEndedProxy checks that a proxy that ends leaves the masters' lists at once.
func TestListOfEndedProxy(t *testing.T) {
	t.Parallel()
	servers, both := newMovableClusters(t)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	c, err := NewCluster(Options{Masters: both[0].opts.Masters, Access: master.Access{Timeout: 5 * time.Second},
		Settings: both[0].opts.Settings, FromUpstream: true})
	if err != nil {
		t.Fatal(err)
	}
	go func() { defer close(ended); _ = c.Run(ctx) }()
	ready, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if !c.WaitReady(ready) {
		t.Fatal("the masters do not vote")
	}
	stop()
	<-ended
	for _, server := range servers {
		if ids := listedProxies(t, server); len(ids) != 2 || slices.Contains(ids, c.proxyID) {
			t.Errorf("listed: %v, want %s and %s", ids, both[0].proxyID, both[1].proxyID)
		}
	}
}

// mustCheckMove waits until the locks can be moved.
func (c *Cluster) mustCheckMove(t *testing.T) {
	t.Helper()
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		err := c.CheckMove()
		if err == nil {
			return
		}
		if time.Since(began) > 3*guard.ProxyTimeout {
			t.Fatalf("it still hinders: %v", err)
		}
	}
}
