package main

import (
	"errors"
	"time"

	"redlock-proxy/integration/harness"
)

// failing is how many masters fail.
const failing = 2

// state is a condition of the masters in which LOCK is timed.
type state struct {
	name     string
	baseline string // the state to compare with; empty for one of those
	relayed  bool   // the proxy that reaches two masters over a relay
	inflict  func(f *fleet, i int) error
	mend     func(f *fleet, i int) error
}

// states come in the order in which they are measured.
func states() []state {
	const direct, relayed = "healthy", "healthy, two over a relay"
	return []state{
		{name: direct},
		{"2 of 5 killed", direct, false,
			func(f *fleet, i int) error { return f.masters[i].Kill() },
			func(f *fleet, i int) error { return f.masters[i].Restart() }},
		{"2 of 5 stopped", direct, false,
			func(f *fleet, i int) error { return f.masters[i].Pause() },
			func(f *fleet, i int) error { return f.masters[i].Continue() }},
		{name: relayed, relayed: true},
		{"2 of 5 unreachable", relayed, true,
			func(f *fleet, i int) error { return f.links[i].Cut() },
			func(f *fleet, i int) error { return f.links[i].Heal() }},
	}
}

// measure brings the state about, times LOCK, and waits until the masters are well again.
func (f *fleet) measure(s state, clients int, window time.Duration) (figures, error) {
	proxy := f.direct
	if s.relayed {
		proxy = f.relayed
	}
	l, err := startLoad(proxy, clients)
	if err != nil {
		return figures{}, err
	}
	time.Sleep(warmUp)
	l.begin()
	err = f.each(s.inflict)
	if err == nil {
		time.Sleep(window)
	}
	got := l.end()
	return got, errors.Join(err, f.each(s.mend), f.wellAgain())
}

// each does something to every master that fails.
func (f *fleet) each(do func(*fleet, int) error) error {
	if do == nil {
		return nil
	}
	var errs []error
	for i := range failing {
		errs = append(errs, do(f, i))
	}
	return errors.Join(errs...)
}

// fleet is five masters and two proxies.
type fleet struct {
	masters         []*harness.Redis
	links           []*harness.Link // to the masters that fail
	direct, relayed *harness.Proxy
}

func startFleet(set settings) (*fleet, error) {
	f := &fleet{}
	if err := f.start(set); err != nil {
		return nil, errors.Join(err, f.close())
	}
	return f, nil
}

func (f *fleet) start(set settings) (err error) {
	if f.masters, err = harness.StartMasters(5); err != nil {
		return err
	}
	urls := harness.URLs(f.masters)
	if f.direct, err = harness.StartProxy(harness.ProxyOptions{Binary: set.binary, Masters: urls}); err != nil {
		return err
	}
	for i := range failing {
		link, err := harness.NewLink(f.masters[i].Addr())
		if err != nil {
			return err
		}
		f.links = append(f.links, link)
		urls[i] = "redis://" + link.Addr()
	}
	f.relayed, err = harness.StartProxy(harness.ProxyOptions{Binary: set.binary, Masters: urls})
	return err
}

func (f *fleet) close() error {
	var errs []error
	for _, proxy := range []*harness.Proxy{f.direct, f.relayed} {
		if proxy != nil {
			errs = append(errs, proxy.Close())
		}
	}
	for _, link := range f.links {
		errs = append(errs, link.Close())
	}
	return errors.Join(append(errs, harness.CloseAll(f.masters), harness.RemoveBuild())...)
}
