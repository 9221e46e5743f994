package main

import (
	"context"
	"errors"
	"slices"

	"redlock-proxy/integration/harness"
)

// fleet is the processes that the contenders work on.
type fleet struct {
	masters []*harness.Redis
	proxy   *harness.Proxy // nil when it is not among the contenders
}

// startFleet starts the masters and, where it is wanted, the proxy before them.
func startFleet(ctx context.Context, set settings) (*fleet, error) {
	binary, err := proxyBinary(ctx, set)
	if err != nil {
		return nil, err
	}
	f := &fleet{}
	if f.masters, err = harness.StartMasters(set.masters); err != nil {
		return nil, err
	}
	if binary == "" {
		return f, nil
	}
	opts := harness.ProxyOptions{Binary: binary, Masters: harness.URLs(f.masters)}
	if slices.Contains(set.contenders, nameLockKeys) {
		opts.Args = []string{"--lock-keys", keyPrefix + "*"}
	}
	f.proxy, err = harness.StartProxy(opts)
	if err != nil {
		return nil, errors.Join(err, f.close())
	}
	return f, nil
}

// proxyBinary returns the program to run, built if need be; "" when the proxy does not take part.
func proxyBinary(ctx context.Context, set settings) (string, error) {
	switch {
	case !slices.Contains(set.contenders, nameProxy) && !slices.Contains(set.contenders, nameLockKeys):
		return "", nil
	case set.binary != "":
		return set.binary, nil
	}
	return harness.BuildProxy(ctx)
}

func (f *fleet) close() error {
	var err error
	if f.proxy != nil {
		err = f.proxy.Close()
	}
	return errors.Join(err, harness.CloseAll(f.masters), harness.RemoveBuild())
}
