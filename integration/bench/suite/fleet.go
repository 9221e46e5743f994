package suite

import (
	"errors"
	"time"

	"redlock-proxy/integration/harness"
	"redlock-proxy/internal/redistest"
	"redlock-proxy/internal/redistest/faultlink"
)

// Fleet holds masters, links to them, and proxies. Close ends all of them.
type Fleet struct {
	Masters []*redistest.Server
	links   []*faultlink.Link
	proxies []*harness.Proxy
}

// StartFleet starts the given number of masters. The error is redistest.ErrNoRedis if redis-server
// is not installed.
func StartFleet(masters int) (*Fleet, error) {
	all, err := redistest.StartMasters(masters)
	return &Fleet{Masters: all}, err
}

// Link adds a link to master number i.
func (f *Fleet) Link(i int) (*faultlink.Link, error) {
	link, err := faultlink.New(f.Masters[i].Addr())
	if err == nil {
		f.links = append(f.links, link)
	}
	return link, err
}

// StartProxy adds a proxy. If opts has no masters, the proxy gets all masters of the fleet.
func (f *Fleet) StartProxy(opts harness.ProxyOptions) (*harness.Proxy, error) {
	if opts.Masters == nil {
		opts.Masters = redistest.URLs(f.Masters)
	}
	proxy, err := harness.StartProxy(opts)
	if err == nil {
		f.proxies = append(f.proxies, proxy)
	}
	return proxy, err
}

// Close ends proxies, links and masters.
func (f *Fleet) Close() error {
	var errs []error
	for _, proxy := range f.proxies {
		errs = append(errs, proxy.Close())
	}
	for _, link := range f.links {
		errs = append(errs, link.Close())
	}
	return errors.Join(append(errs, redistest.CloseAll(f.Masters))...)
}

// CPUReader is a process whose CPU time can be read.
type CPUReader interface{ CPU() (time.Duration, error) }

// TotalCPU adds up the user and system time of processes since their start.
func TotalCPU[S CPUReader](processes []S) (sum time.Duration, err error) {
	for _, one := range processes {
		spent, err := one.CPU()
		if err != nil {
			return sum, err
		}
		sum += spent
	}
	return sum, nil
}
