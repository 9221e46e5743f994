package kit

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"redlock-proxy/integration/harness"
	"redlock-proxy/internal/redistest"
	"redlock-proxy/internal/redistest/faultlink"
)

// Fleet holds masters, mostly five, and their proxies.
type Fleet struct {
	Masters []*redistest.Server
	Proxies []*harness.Proxy
	Links   [][]*faultlink.Link // by proxy, in the order of the masters; empty without links
}

// StartFleet starts five masters and a proxy that connects to them directly. They are closed when
// the test ends.
func StartFleet(t *testing.T, args ...string) *Fleet {
	t.Helper()
	f := &Fleet{Masters: StartMasters(t)}
	f.Proxies = append(f.Proxies, StartProxy(t, redistest.URLs(f.Masters), args...))
	return f
}

// StartLinkedFleet starts five masters and the given number of proxies. Each proxy connects to each
// master over a link of its own.
func StartLinkedFleet(t *testing.T, proxies int, args ...string) *Fleet {
	t.Helper()
	return LinkFleet(t, StartMasters(t), proxies, args...)
}

// LinkFleet starts proxies and links like StartLinkedFleet, for these masters.
func LinkFleet(t *testing.T, masters []*redistest.Server, proxies int, args ...string) *Fleet {
	t.Helper()
	f := &Fleet{Masters: masters}
	for range proxies {
		links := StartLinks(t, f.Masters)
		f.Links = append(f.Links, links)
		f.Proxies = append(f.Proxies, StartProxy(t, LinkURLs(links), args...))
	}
	return f
}

// Names returns the host:port by which the first proxy knows each master.
func (f *Fleet) Names() []string {
	var names []string
	for i, master := range f.Masters {
		if len(f.Links) > 0 {
			names = append(names, f.Links[0][i].Addr())
		} else {
			names = append(names, master.Addr())
		}
	}
	return names
}

// StartGuardedFleet starts five masters and the given number of proxies, with the guard on or off.
// With the guard on, StartGuardedFleet waits until all masters vote.
func StartGuardedFleet(t *testing.T, guard bool, proxies int) *Fleet {
	t.Helper()
	f := &Fleet{Masters: StartMasters(t)}
	for range proxies {
		f.Proxies = append(f.Proxies, StartProxy(t, redistest.URLs(f.Masters), "--guard="+strconv.FormatBool(guard)))
	}
	if guard {
		f.WantVoting(t, 5)
	}
	return f
}

// RunWhileUnreachable calls act while the first proxy cannot reach some masters. Then it waits
// until all masters vote again.
func (f *Fleet) RunWhileUnreachable(t *testing.T, masters []int, act func()) {
	t.Helper()
	for _, i := range masters {
		Must(t, f.Links[0][i].Refuse())
	}
	f.WantDown(t, len(masters)) // otherwise messages sent now could arrive after Heal
	act()
	for _, i := range masters {
		Must(t, f.Links[0][i].Heal())
	}
	f.WantVoting(t, len(f.Masters))
}

// WantDown waits until the first proxy reports n masters as down. It sends LOCK repeatedly, so that
// the proxy notices failures.
func (f *Fleet) WantDown(t *testing.T, n int) {
	t.Helper()
	client := Connect(t, f.Proxies[0])
	Eventually(t, func() error {
		Do(t, client, "LOCK", "noticed", "n", "PX", "1000")
		if info := fmt.Sprint(Do(t, client, "PROXY", "INFO")); strings.Count(info, ",state=down,") != n {
			return fmt.Errorf("not %d masters are down:\n%s", n, info)
		}
		return nil
	})
}

// WantVoting waits until every proxy reports n voting masters. On a busy machine this may take longer
// than WaitLimit.
func (f *Fleet) WantVoting(t *testing.T, n int) {
	t.Helper()
	for _, proxy := range f.Proxies {
		client := Connect(t, proxy)
		AwaitWithin(t, 6*WaitLimit, func() error {
			info := fmt.Sprint(Do(t, client, "PROXY", "INFO"))
			if !strings.Contains(info, fmt.Sprintf("redlock_masters_voting:%d\r\n", n)) {
				return fmt.Errorf("not %d masters vote:\n%s", n, info)
			}
			return nil
		})
	}
}

// Addrs returns the host:port of each proxy.
func (f *Fleet) Addrs() []string {
	var addrs []string
	for _, proxy := range f.Proxies {
		addrs = append(addrs, proxy.Addr())
	}
	return addrs
}
