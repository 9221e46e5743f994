package quorum

import (
	"context"
	"errors"
	"testing"
	"time"

	"redlock-proxy/internal/redistest"
	"redlock-proxy/quorum/location"
	"redlock-proxy/quorum/master"
)

// TestUndecidedChange checks the error of a change of the masters if a majority of the masters
// stops before it has decided: the masters may still be changed.
func TestUndecidedChange(t *testing.T) {
	t.Parallel()
	servers, urls := make([]*redistest.Server, 4), make([]string, 4)
	for i := range servers {
		servers[i] = redistest.New(t, redistest.Options{})
		urls[i] = "redis://" + servers[i].Addr()
	}
	c := runCluster(t, Options{Masters: urls[:3], FreshStart: true})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err := c.ChangeMasters(ctx, urls, func(func(string, string) string) error {
		time.AfterFunc(100*time.Millisecond, cancel)
		return errors.Join(servers[0].Pause(), servers[1].Pause())
	})
	if !errors.Is(err, ErrUndecided) {
		t.Errorf("got %v, want %v", err, ErrUndecided)
	}
	if err := errors.Join(servers[0].Continue(), servers[1].Continue()); err != nil {
		t.Error(err)
	}
}

// TestLocationAfterChange checks that a change of the masters does not decide on the location of
// the locks, which follows from the setting until a move has begun.
func TestLocationAfterChange(t *testing.T) {
	t.Parallel()
	urls := make([]string, 4)
	for i := range urls {
		urls[i] = "redis://" + redistest.New(t, redistest.Options{}).Addr()
	}
	c := runCluster(t, Options{Masters: urls[:3], FreshStart: true, FromUpstream: true, Settings: "s\n" + LocksUpstream})
	if at, _ := c.CurrentLocation(); c.IsDecided(at) {
		t.Errorf("before: %v is decided", at)
	}
	if err := c.ChangeMasters(t.Context(), urls, func(func(string, string) string) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if at := c.mustReachEra(t, 1); at.Place != location.Upstream || c.IsDecided(at) {
		t.Errorf("after a change of the masters: %v, decided %v", at, c.IsDecided(at))
	}
	c.mustMove(t, location.MovingToMasters)
	if at := c.mustMove(t, location.Upstream); !c.IsDecided(at) {
		t.Errorf("after an aborted move: %v is not decided", at)
	}
}

// TestFewerDatabases checks that a server with fewer databases than the masters does not become a
// master: it could never catch up in the missing ones. A master with fewer databases may stay.
func TestFewerDatabases(t *testing.T) {
	t.Parallel()
	var urls []string
	for _, databases := range []string{"16", "16", "2", "1", "16"} {
		server := redistest.New(t, redistest.Options{ExtraArgs: []string{"--databases", databases}})
		urls = append(urls, "redis://"+server.Addr())
	}
	c := runCluster(t, Options{Masters: urls[:3], FreshStart: true})
	change := func(urls []string) error {
		return c.ChangeMasters(t.Context(), urls, func(func(string, string) string) error { return nil })
	}
	want := "master " + masterNames(urls)[3] + " has fewer databases (1) than another server (16); raise its databases"
	if err := change(urls[:4]); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if at, known := c.CurrentLocation(); !known || at.Era != 0 {
		t.Errorf("the change has begun: era %d, known %v", at.Era, known)
	}
	if err := change(append(urls[:3:3], urls[4])); err != nil {
		t.Error(err)
	}
}

// TestStopDuringChange stops the cluster during a change of the masters, while one of its own tasks
// also wants to make a change. Neither waits for the other.
func TestStopDuringChange(t *testing.T) {
	t.Parallel()
	urls := make([]string, 4)
	for i := range urls {
		urls[i] = "redis://" + redistest.New(t, redistest.Options{}).Addr()
	}
	c, err := NewCluster(Options{Masters: urls[:3], FreshStart: true, Access: master.Access{Timeout: 5 * time.Second}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- c.Run(ctx) }()
	if !c.WaitReady(t.Context()) {
		t.Fatal("the masters do not vote")
	}
	at, _ := c.CurrentLocation()
	checking, finish, changed := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		changed <- c.ChangeMasters(t.Context(), urls, func(func(string, string) string) error {
			close(checking)
			<-finish
			return nil
		})
	}()
	<-checking
	stop()
	time.Sleep(100 * time.Millisecond) // Run waits for the end of the change.
	c.tasks.Go(func() { _ = c.decideLocation(ctx, at, at.Source()) })
	time.Sleep(100 * time.Millisecond) // The task waits for the end of the change, too.
	close(finish)
	for name, ended := range map[string]chan error{"the cluster": stopped, "the change": changed} {
		select {
		case err := <-ended:
			if stopped := name == "the cluster"; stopped != (err == nil) {
				t.Errorf("%s ended with %v", name, err)
			}
		case <-time.After(decisionTimeout):
			t.Fatalf("%s does not end", name)
		}
	}
}
