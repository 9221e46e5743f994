package locks

import (
	"errors"
	"slices"
	"time"

	"redlock-proxy/integration/bench/suite"
	"redlock-proxy/integration/harness"
)

// fleet is the processes that the contenders work on.
type fleet struct {
	*suite.Fleet
	addrs []string       // where the contenders reach the masters
	proxy *harness.Proxy // nil when it is not among the contenders
}

// startFleet starts the masters and, where it is wanted, the proxy before them.
func startFleet(set settings) (*fleet, error) {
	servers, err := suite.StartFleet(set.masters)
	if err != nil {
		return nil, err
	}
	f := &fleet{Fleet: servers}
	if err := errors.Join(f.moveAway(set.distance), f.startProxy(set)); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// moveAway puts the masters at a distance.
func (f *fleet) moveAway(distance time.Duration) error {
	for i, master := range f.Masters {
		f.addrs = append(f.addrs, master.Addr())
		if distance == 0 {
			continue
		}
		link, err := f.Link(i)
		if err != nil {
			return err
		}
		link.Delay(distance)
		f.addrs[i] = link.Addr()
	}
	return nil
}

// startProxy starts the proxy where it takes part.
func (f *fleet) startProxy(set settings) (err error) {
	lockKeys := slices.ContainsFunc(set.contenders, isOnLockKeys)
	if !lockKeys && !slices.Contains(set.contenders, nameProxy) {
		return nil
	}
	opts := harness.ProxyOptions{Binary: set.binary}
	for _, addr := range f.addrs {
		opts.Masters = append(opts.Masters, "redis://"+addr)
	}
	if lockKeys {
		opts.Args = []string{"--lock-keys", keyPrefix + "*"}
	}
	f.proxy, err = f.StartProxy(opts)
	return err
}
