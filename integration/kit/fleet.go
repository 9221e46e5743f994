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

// Fleet is masters, mostly five, and the proxies before them.
type Fleet struct {
	Masters []*redistest.Server
	Proxies []*harness.Proxy
	Links   [][]*faultlink.Link // of each proxy, in the order of the masters; empty where it reaches them directly
}

// StartFleet starts five masters and a proxy that reaches them directly. Both end with the test.
func StartFleet(t *testing.T, args ...string) *Fleet {
	t.Helper()
	f := &Fleet{Masters: StartMasters(t)}
	f.Proxies = append(f.Proxies, StartProxy(t, redistest.URLs(f.Masters), args...))
	return f
}

// StartLinkedFleet starts five masters and so many proxies, each of which reaches each master over
// a link of its own.
func StartLinkedFleet(t *testing.T, proxies int, args ...string) *Fleet {
	t.Helper()
	return LinkFleet(t, StartMasters(t), proxies, args...)
}

// LinkFleet is StartLinkedFleet on these masters.
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

// Names are the masters as the first proxy knows them.
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

// StartGuarded starts five masters and so many proxies, with the guard on or off. With the guard,
// all masters vote when it returns.
func StartGuarded(t *testing.T, guard bool, proxies int) *Fleet {
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

// Without does something while the first proxy does not reach some masters, and returns when it
// does again.
func (f *Fleet) Without(t *testing.T, masters []int, act func()) {
	t.Helper()
	for _, i := range masters {
		Must(t, f.Links[0][i].Refuse())
	}
	f.wantDown(t, len(masters)) // or what is sent to them now arrives when they are back
	act()
	for _, i := range masters {
		Must(t, f.Links[0][i].Heal())
	}
	f.WantVoting(t, len(f.Masters))
}

// wantDown wants the first proxy to notice that it does not reach so many masters.
func (f *Fleet) wantDown(t *testing.T, n int) {
	t.Helper()
	client := Connect(t, f.Proxies[0])
	Soon(t, func() error {
		Do(t, client, "LOCK", "noticed", "n", "PX", "1000")
		if info := fmt.Sprint(Do(t, client, "PROXY", "INFO")); strings.Count(info, ",state=down,") != n {
			return fmt.Errorf("not %d masters are down:\n%s", n, info)
		}
		return nil
	})
}

// WantVoting wants so many masters to vote soon, as every proxy sees it.
func (f *Fleet) WantVoting(t *testing.T, n int) {
	t.Helper()
	for _, proxy := range f.Proxies {
		client := Connect(t, proxy)
		Soon(t, func() error {
			if info := fmt.Sprint(Do(t, client, "PROXY", "INFO")); !strings.Contains(info, fmt.Sprintf("redlock_masters_voting:%d\r\n", n)) {
				return fmt.Errorf("not %d masters vote:\n%s", n, info)
			}
			return nil
		})
	}
}

// Addrs are those of the proxies.
func (f *Fleet) Addrs() []string {
	var addrs []string
	for _, proxy := range f.Proxies {
		addrs = append(addrs, proxy.Addr())
	}
	return addrs
}
