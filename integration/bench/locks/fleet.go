package locks

import (
	"errors"
	"slices"
	"time"

	"redlock-proxy/integration/bench/suite"
	"redlock-proxy/integration/harness"
)

// fleet holds the processes that the contenders use.
type fleet struct {
	*suite.Fleet
	addrs []string       // addresses of the masters, or of the links to them
	proxy *harness.Proxy // nil if no contender uses it
}

// startFleet starts the masters, the links that delay their replies, and the proxy if a contender
// uses it.
func startFleet(set settings) (*fleet, error) {
	servers, err := suite.StartFleet(set.masters)
	if err != nil {
		return nil, err
	}
	f := &fleet{Fleet: servers}
	if err := errors.Join(f.addLatency(set.addedLatency), f.startProxy(set)); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// addLatency adds links that delay the masters' replies, unless latency is 0.
func (f *fleet) addLatency(latency time.Duration) error {
	for i, master := range f.Masters {
		f.addrs = append(f.addrs, master.Addr())
		if latency == 0 {
			continue
		}
		link, err := f.Link(i)
		if err != nil {
			return err
		}
		link.Delay(latency)
		f.addrs[i] = link.Addr()
	}
	return nil
}

// startProxy starts the proxy if a contender uses it.
func (f *fleet) startProxy(set settings) (err error) {
	lockKeys := slices.ContainsFunc(set.contenders, usesLockKeys)
	usesProxy := func(name string) bool { return name != nameRedsync && name != nameDirect }
	if !slices.ContainsFunc(set.contenders, usesProxy) {
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
