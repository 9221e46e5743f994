package faults

import (
	"context"
	"errors"
	"time"

	"redlock-proxy/integration/bench/suite"
	"redlock-proxy/integration/harness"
	"redlock-proxy/internal/redistest"
	"redlock-proxy/internal/redistest/faultlink"
)

// failingMasters is the number of masters that fail.
const failingMasters = 2

// state describes a condition of the masters in which LOCK is timed.
type state struct {
	name       string
	baseline   string // the state to compare with; empty: none
	viaLinks   bool   // uses the proxy with a relay to two masters
	causeFault func(f *fleet, i int) error
	endFault   func(f *fleet, i int) error
}

// states returns the states in the order in which they are measured.
func states() []state {
	const directName, relayedName = "healthy", "healthy, two over a relay"
	return []state{
		{name: directName},
		{"2 of 5 killed", directName, false,
			func(f *fleet, i int) error { return f.Masters[i].Kill() },
			func(f *fleet, i int) error { return f.Masters[i].Restart() }},
		{"2 of 5 stopped", directName, false,
			func(f *fleet, i int) error { return f.Masters[i].Pause() },
			func(f *fleet, i int) error { return f.Masters[i].Continue() }},
		{name: relayedName, viaLinks: true},
		{"2 of 5 unreachable", relayedName, true,
			func(f *fleet, i int) error { return f.links[i].Cut() },
			func(f *fleet, i int) error { return f.links[i].Heal() }},
	}
}

// measure causes the fault of a state, times LOCK, and ends the fault. Then it waits until the
// proxies use all masters again.
func (f *fleet) measure(ctx context.Context, s state, clients int, window time.Duration) (outcome, error) {
	proxy := f.directProxy
	if s.viaLinks {
		proxy = f.linkedProxy
	}
	l, err := startLoad(proxy, clients)
	if err != nil {
		return outcome{}, err
	}
	err = suite.Pause(ctx, warmUp)
	l.startMeasuring()
	if err == nil {
		err = f.eachFailingMaster(s.causeFault)
	}
	if err == nil {
		err = suite.Pause(ctx, window)
	}
	got := l.stop()
	return got, errors.Join(err, f.eachFailingMaster(s.endFault), f.waitHealthy())
}

// eachFailingMaster calls do with the index of every failing master.
func (f *fleet) eachFailingMaster(do func(*fleet, int) error) error {
	if do == nil {
		return nil
	}
	var errs []error
	for i := range failingMasters {
		errs = append(errs, do(f, i))
	}
	return errors.Join(errs...)
}

// fleet holds five masters and two proxies.
type fleet struct {
	*suite.Fleet
	links                    [failingMasters]*faultlink.Link // links to the failing masters
	directProxy, linkedProxy *harness.Proxy
}

func startFleet(set settings) (*fleet, error) {
	servers, err := suite.StartFleet(5)
	if err != nil {
		return nil, err
	}
	f := &fleet{Fleet: servers}
	if err := f.start(set); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func (f *fleet) start(set settings) (err error) {
	if f.directProxy, err = f.StartProxy(harness.ProxyOptions{Binary: set.binary}); err != nil {
		return err
	}
	urls := redistest.URLs(f.Masters)
	for i := range f.links {
		if f.links[i], err = f.Link(i); err != nil {
			return err
		}
		urls[i] = "redis://" + f.links[i].Addr()
	}
	f.linkedProxy, err = f.StartProxy(harness.ProxyOptions{Binary: set.binary, Masters: urls})
	return err
}
