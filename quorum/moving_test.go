package quorum

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"redlock-proxy/internal/redistest"
	"redlock-proxy/quorum/location"
)

// newMovable runs two proxies on the same masters, with the locks at the upstream.
func newMovable(t *testing.T, logs ...*slog.Logger) [2]*Cluster {
	_, clusters := newMovableClusters(t, logs...)
	return clusters
}

// newMovableClusters does the same as newMovable, and also returns the masters.
func newMovableClusters(t *testing.T, logs ...*slog.Logger) (servers []*redistest.Server, clusters [2]*Cluster) {
	var urls []string
	for range 3 {
		servers = append(servers, redistest.New(t, redistest.Options{}))
		urls = append(urls, "redis://"+servers[len(servers)-1].Addr())
	}
	for i := range clusters {
		opts := Options{Masters: urls, FreshStart: true, Settings: "s\n" + LocksUpstream, FromUpstream: true}
		if i < len(logs) {
			opts.Logger = logs[i]
		}
		clusters[i] = startCluster(t, opts)
	}
	for _, c := range clusters {
		ready, cancel := context.WithTimeout(t.Context(), time.Minute)
		if !c.WaitReady(ready) {
			t.Fatal("the masters do not vote")
		}
		cancel()
	}
	return servers, clusters
}

// stallingLog is a log handler that stops its proxy at a message, until the test closes resume.
type stallingLog struct {
	slog.Handler
	message string
	reached chan struct{}
	resume  chan struct{}
}

func newStallingLog(message string) *stallingLog {
	return &stallingLog{slog.DiscardHandler, message, make(chan struct{}, 1), make(chan struct{})}
}

func (s *stallingLog) Enabled(context.Context, slog.Level) bool { return true }

func (s *stallingLog) Handle(_ context.Context, r slog.Record) error {
	if r.Message == s.message {
		s.reached <- struct{}{}
		<-s.resume
	}
	return nil
}

// TestMoveOfEndedEra stops a proxy right after it has decided a move of the locks, while
// another proxy ends the move. When the first proxy continues, it does not wait for the ended era,
// and follows to the next era.
func TestMoveOfEndedEra(t *testing.T) {
	t.Parallel()
	log := newStallingLog("the locks are being moved")
	both := newMovable(t, slog.New(log))
	stalled, other := both[0], both[1]
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	from, _ := stalled.CurrentLocation()
	done := make(chan error, 1)
	go func() { _, err := stalled.DecideLocation(ctx, from, location.MovingToMasters); done <- err }()
	<-log.reached
	moving := other.mustReachEra(t, from.Era+1)
	if at := other.mustMove(t, location.Upstream); at.Era != moving.Era+1 {
		t.Fatalf("ended in era %d, want %d", at.Era, moving.Era+1)
	}
	// The proxy takes the old era for the current era until it knows the next era.
	for stalled.masterSet().guards.Reconfiguration() == nil {
		time.Sleep(time.Millisecond)
	}
	close(log.resume)
	if err := <-done; !errors.Is(err, ErrLocationChanged) {
		t.Errorf("the move that another proxy ended: %v", err)
	}
	if at := stalled.mustReachEra(t, moving.Era+1); at.Place != location.Upstream {
		t.Errorf("the proxy that stood still has the locks at %v", at)
	}
}

// mustReachEra waits until this proxy knows the location of the locks in this era or in a later
// era.
func (c *Cluster) mustReachEra(t *testing.T, era int) Location {
	t.Helper()
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		if at, known := c.CurrentLocation(); known && at.Era >= era {
			return at
		}
		if time.Since(began) > time.Minute {
			t.Fatalf("era %d is not reached", era)
		}
	}
}

func (c *Cluster) mustMove(t *testing.T, to location.Place) Location {
	t.Helper()
	at, known := c.CurrentLocation()
	if !known {
		t.Fatal("it is not known where the locks are")
	}
	at, err := c.DecideLocation(t.Context(), at, to)
	if err != nil {
		t.Fatalf("%v: %v", to, err)
	}
	return at
}

// TestMoveInBothDirections moves the locks to the masters and back. At each step only one location
// serves, and both proxies know it.
func TestMoveInBothDirections(t *testing.T) {
	t.Parallel()
	both := newMovable(t)
	key := Key{Name: "lock:a", Movable: true}
	take := func(c *Cluster) error {
		_, err := c.Take(t.Context(), TakeRequest{Keys: []Key{key},
			TakeOptions: TakeOptions{Tokens: []string{"me"}, TTL: 10 * time.Second}})
		return err
	}
	var wrongLocation *WrongLocationError
	if err := take(both[0]); !errors.As(err, &wrongLocation) || wrongLocation.Current.Place != location.Upstream {
		t.Fatalf("taken on the masters while the locks are at the upstream: %v", err)
	}
	for _, to := range []location.Place{location.MovingToMasters, location.MovingToMasters, location.Masters, location.MovingToUpstream,
		location.Upstream} {
		at := both[0].mustMove(t, to)
		if now, err := both[0].Confirm(t.Context()); err != nil || now != at {
			t.Errorf("confirmed %v %v, want %v", now, err, at)
		}
		if now := both[1].mustReachEra(t, at.Era); now != at {
			t.Fatalf("the other proxy does not follow to %v, but to %v", at, now)
		}
		if err := both[1].ReportPaused(t.Context(), at.Era, PauseReport{Server: "r", IdleConns: []string{"10.0.0.1:1"},
			BusyConns: []string{"[::1]:2", "[::1]:3"}}); err != nil {
			t.Error(err)
		}
		reports, missing := both[0].PauseReports(t.Context(), at.Era)
		if len(reports) != 1 || !slices.Equal(missing, []string{both[0].proxyID}) || reports[0].Proxy != both[1].proxyID ||
			!slices.Equal(reports[0].IdleConns, []string{"10.0.0.1:1"}) ||
			!slices.Equal(reports[0].BusyConns, []string{"[::1]:2", "[::1]:3"}) {
			t.Errorf("in era %d %v hold back, and not %v", at.Era, reports, missing)
		}
		switch err := take(both[1]); {
		case to == location.Masters && err != nil:
			t.Errorf("not taken on the masters: %v", err)
		case to != location.Masters && !errors.As(err, &wrongLocation):
			t.Errorf("taken at %v: %v", to, err)
		}
		mover := key
		mover.Movable, mover.Era = false, at.Era
		if to == location.MovingToUpstream {
			if snapshots, err := both[0].Read(t.Context(), []Key{mover}); err != nil || snapshots[0].Value != "me" {
				t.Errorf("the mover reads %+v, %v", snapshots, err)
			}
		}
		mover.Era += 5
		if _, err := both[0].Read(t.Context(), []Key{mover}); !errors.As(err, &wrongLocation) {
			t.Errorf("read in another era: %v", err)
		}
	}
}

// TestMoveWithoutRenewal lets a proxy move the locks for longer than a lease, which the
// proxy renews. Then the proxy stops as if it had been killed, and the other proxy decides that the
// locks stay.
func TestMoveWithoutRenewal(t *testing.T) {
	t.Parallel()
	both := newMovable(t)
	ctx, stop := context.WithCancel(t.Context())
	from, _ := both[0].CurrentLocation()
	moving, err := both[0].DecideLocation(ctx, from, location.MovingToMasters)
	if err != nil {
		t.Fatal(err)
	}
	both[1].mustReachEra(t, moving.Era)
	for began := time.Now(); time.Since(began) < location.Lease+2*time.Second; time.Sleep(100 * time.Millisecond) {
		if at, known := both[1].CurrentLocation(); known && at != moving {
			t.Fatalf("after %v the locks are at %v, though they are being moved still", time.Since(began), at)
		}
	}
	stop()
	for _, c := range both {
		if at := c.mustReachEra(t, moving.Era+1); at.Place != location.Upstream {
			t.Errorf("the locks are at %v", at)
		}
	}
}

// TestAbortAfterMastersReturn stops two of three masters for longer than a lease while the
// locks are moved. As soon as the masters are back, the proxies decide that the locks stay.
func TestAbortAfterMastersReturn(t *testing.T) {
	t.Parallel()
	servers, both := newMovableClusters(t)
	ctx, stop := context.WithCancel(t.Context())
	from, _ := both[0].CurrentLocation()
	moving, err := both[0].DecideLocation(ctx, from, location.MovingToMasters)
	if err != nil {
		t.Fatal(err)
	}
	both[1].mustReachEra(t, moving.Era)
	for _, s := range servers[:2] {
		if err := s.Pause(); err != nil {
			t.Fatal(err)
		}
	}
	stop() // The proxy stops renewing the move. Too few masters vote for a decision.
	time.Sleep(location.Lease + 2*time.Second)
	for _, s := range servers[:2] {
		if err := s.Continue(); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range both {
		if at := c.mustReachEra(t, moving.Era+1); at.Place != location.Upstream {
			t.Errorf("the locks are at %v", at)
		}
	}
}

// TestAwaitLocation checks how long awaitLocation waits for the end of a move. At the end the proxy
// does not know the location for a moment, although no move is in progress any more.
func TestAwaitLocation(t *testing.T) {
	arrived, noQuorum := Location{Place: location.Masters, Era: 2}, &NoQuorumError{}
	for _, c := range []struct {
		name             string
		moveEnd, knownAt time.Duration
		want             error
		after            time.Duration
	}{
		{"at rest", 0, 0, nil, 0},
		{"no quorum", 0, time.Hour, noQuorum, changeTimeout},
		{"short move", time.Second, time.Second, nil, time.Second},
		{"long move", changeTimeout - time.Millisecond, changeTimeout + time.Second, nil, changeTimeout + time.Second},
		{"no quorum after a move", 12 * time.Second, time.Hour, noQuorum, 12*time.Second + changeTimeout},
		{"endless move", time.Hour, time.Hour, ErrMoving, moveTimeout},
	} {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			at, err := awaitLocation(t.Context(), func() <-chan struct{} { return nil }, func() (Location, bool, bool) {
				elapsed := time.Since(start)
				if elapsed < c.moveEnd {
					return Location{Place: location.MovingToMasters, Era: 1}, true, true
				}
				return arrived, elapsed >= c.knownAt, false
			}, func() error { return noQuorum })
			late := time.Since(start) - c.after
			if !errors.Is(err, c.want) || err == nil && at != arrived || late < -followPause || late > followPause {
				t.Errorf("%s: %v, %v after %v", c.name, at, err, time.Since(start))
			}
		})
	}
}

// TestRepeatUnconfirmed checks that repeatUntilConfirmed tries again while the masters vote but do
// not confirm, until shouldStop returns true. After any other result it does not try again.
func TestRepeatUnconfirmed(t *testing.T) {
	expected, other := Location{Place: location.Masters, Era: 2}, errors.New("another")
	unconfirmed, noQuorum := &NoQuorumError{Unconfirmed: true}, &NoQuorumError{}
	for _, c := range []struct {
		name     string
		results  []error // the result of each try
		maxTries int     // the maximum number of tries
		want     error
	}{
		{"at once", []error{nil}, 5, nil},
		{"after it was heard of", []error{unconfirmed, unconfirmed, nil}, 5, nil},
		{"too late", []error{unconfirmed, unconfirmed, unconfirmed}, 3, unconfirmed},
		{"without masters", []error{noQuorum}, 5, noQuorum},
		{"without masters in the end", []error{unconfirmed, noQuorum}, 5, noQuorum},
		{"another error", []error{other}, 5, other},
	} {
		tries := 0
		at, err := repeatUntilConfirmed(func() (Location, error) {
			tries++
			if err := c.results[tries-1]; err != nil {
				return Location{}, err
			}
			return expected, nil
		}, func() bool { return tries == c.maxTries })
		if !errors.Is(err, c.want) || tries != len(c.results) || err == nil && at != expected {
			t.Errorf("%s: %v, %v after %d tries", c.name, at, err, tries)
		}
	}
}
