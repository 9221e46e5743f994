package faults

import (
	"slices"
	"testing"

	"redlock-proxy/integration/kit"
)

// Fault describes a fault of a fleet. Cause makes master number i unavailable to at least one
// proxy, and Repair makes the master available again. The network fault in All affects only the
// first proxy.
type Fault struct {
	Name       string
	needsLinks bool // the fault can only happen on links
	Cause      func(f *kit.Fleet, i int) error
	Repair     func(f *kit.Fleet, i int) error
}

// All returns the faults of a process and of the network.
func All() []Fault {
	return []Fault{
		{"killed", false,
			func(f *kit.Fleet, i int) error { return f.Masters[i].Kill() },
			func(f *kit.Fleet, i int) error { return f.Masters[i].Restart() }},
		{"stopped", false,
			func(f *kit.Fleet, i int) error { return f.Masters[i].Pause() },
			func(f *kit.Fleet, i int) error { return f.Masters[i].Continue() }},
		{"unreachable", true,
			func(f *kit.Fleet, i int) error { return f.Links[0][i].Cut() },
			func(f *kit.Fleet, i int) error { return f.Links[0][i].Heal() }},
	}
}

// faultNamed returns the fault with this name in All.
func faultNamed(name string) Fault {
	all := All()
	return all[slices.IndexFunc(all, func(f Fault) bool { return f.Name == name })]
}

// Start starts a fleet of one proxy in which the fault can happen. args holds further arguments of
// the proxy.
func (f Fault) Start(t *testing.T, args ...string) *kit.Fleet {
	t.Helper()
	if f.needsLinks {
		return kit.StartLinkedFleet(t, 1, args...)
	}
	return kit.StartFleet(t, args...)
}
