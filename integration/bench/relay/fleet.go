package relay

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"syscall"
	"time"

	"redlock-proxy/integration/bench/suite"
	"redlock-proxy/integration/harness"
	"redlock-proxy/internal/process"
	"redlock-proxy/internal/redistest"
)

// The names of the contenders, as in the tables and in -contenders.
const (
	nameDirect     = "direct"
	nameProxy      = "proxy"
	nameHAProxy    = "haproxy"
	nameNutcracker = "nutcracker"
)

func contenderNames() []string { return []string{nameDirect, nameProxy, nameHAProxy, nameNutcracker} }

// server is a running process to which clients connect.
type server interface {
	Addr() string
	CPU() (time.Duration, error)
	RSS() (int64, error)
	Descriptors() (int, error)
	Close() error
}

// proxyMasters is the number of the proxy's masters.
const proxyMasters = 3

// fleet holds all processes of the benchmark.
type fleet struct {
	upstream   *redistest.Server
	masters    []*redistest.Server
	contenders map[string]server // direct is the upstream itself
	maxClients int               // the number of clients for which a proxy has descriptors
}

// startFleet starts the upstream and the contenders.
func startFleet(ctx context.Context, set settings) (*fleet, error) {
	limit, err := maxClientsByDescriptors()
	if err != nil {
		return nil, err
	}
	f := &fleet{maxClients: limit, contenders: map[string]server{}}
	if err := f.start(ctx, set); err != nil {
		return nil, errors.Join(err, f.close())
	}
	return f, nil
}

func (f *fleet) start(ctx context.Context, set settings) (err error) {
	f.upstream, err = redistest.Start(redistest.Options{
		ExtraArgs: []string{"--maxclients", strconv.Itoa(f.maxClients)},
	})
	if err != nil {
		return err
	}
	for _, name := range set.contenders {
		if f.contenders[name], err = f.startContender(ctx, name, set); err != nil {
			delete(f.contenders, name)
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func (f *fleet) startContender(ctx context.Context, name string, set settings) (server, error) {
	switch name {
	case nameProxy:
		return f.startProxy(ctx, set)
	case nameHAProxy:
		return startHAProxy(f.upstream.Addr(), set.threads, f.maxClients)
	case nameNutcracker:
		return startNutcracker(f.upstream.Addr())
	}
	return f.upstream, nil
}

func (f *fleet) startProxy(ctx context.Context, set settings) (_ server, err error) {
	if set.binary == "" {
		if set.binary, err = harness.BuildProxy(ctx); err != nil {
			return nil, err
		}
	}
	if f.masters, err = redistest.StartMasters(proxyMasters); err != nil {
		return nil, err
	}
	return harness.StartProxy(harness.ProxyOptions{
		Binary: set.binary, Masters: redistest.URLs(f.masters),
		Args: []string{
			"--upstream", f.upstream.URL(), "--max-clients", strconv.Itoa(f.maxClients),
		},
		Env: []string{"GOMAXPROCS=" + strconv.Itoa(set.threads)},
	})
}

// spareDescriptors is more than the number of descriptors that a process needs in addition to the
// descriptors of its clients.
const spareDescriptors = 200

// maxClientsByDescriptors returns the number of clients that a process can serve if it needs two
// descriptors for each client, up to a limit that suffices for the benchmark.
func maxClientsByDescriptors() (int, error) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, fmt.Errorf("limit of open files: %w", err)
	}
	const sufficientClients = 50_000
	if limit.Max > 2*sufficientClients {
		return sufficientClients, nil
	}
	return (int(limit.Max) - spareDescriptors) / 2, nil
}

// totalCPU returns the CPU time of all processes of the benchmark, without finished
// redis-benchmarks.
func (f *fleet) totalCPU() (time.Duration, error) {
	sum, err := process.OwnCPU()
	if err != nil {
		return 0, err
	}
	servers, err := suite.TotalCPU(f.servers())
	return sum + servers, err
}

// servers returns all started processes, each of them once.
func (f *fleet) servers() []server {
	var all []server
	if f.upstream != nil {
		all = append(all, f.upstream)
	}
	for _, master := range f.masters {
		all = append(all, master)
	}
	for name, contender := range f.contenders {
		if name != nameDirect {
			all = append(all, contender)
		}
	}
	return all
}

func (f *fleet) close() error {
	var errs []error
	for _, s := range f.servers() {
		errs = append(errs, s.Close())
	}
	return errors.Join(errs...)
}
