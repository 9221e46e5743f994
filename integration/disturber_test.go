//go:build integration

package integration

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"redlock-proxy/integration/harness"
)

// disturber stops masters, cuts them off from one proxy or from both, and lets them go on, at random; never more than two of the
// five at a time.
type disturber struct {
	fleet *fleet
	kinds []fault
	over  chan struct{}
	tasks sync.WaitGroup

	mu     sync.Mutex
	random *rand.Rand
	busy   map[int]bool // masters that are being disturbed
	counts map[string]int
	err    error
}

// minority is how many of five masters may fail at a time.
const minority = 2

// startDisturber begins with it; kinds are what happens to the masters.
func startDisturber(f *fleet, seed uint64, kinds ...fault) *disturber {
	d := &disturber{
		fleet: f, kinds: kinds, over: make(chan struct{}), random: rand.New(rand.NewPCG(seed, 1)),
		busy: map[int]bool{}, counts: map[string]int{},
	}
	for range minority {
		d.tasks.Go(d.disturb)
	}
	return d
}

// stop mends everything. It returns what was done and how often.
func (d *disturber) stop() (map[string]int, error) {
	close(d.over)
	d.tasks.Wait()
	return d.counts, d.err
}

// disturb has one master after the other fail for a while.
func (d *disturber) disturb() {
	for d.pause(time.Second) {
		master, fault := d.begin()
		err := fault.inflict(d.fleet, master)
		d.pause(time.Second)
		d.end(master, errors.Join(err, fault.mend(d.fleet, master)))
	}
}

// pause waits for a random time of up to limit, often much less; false: it is over.
func (d *disturber) pause(limit time.Duration) bool {
	d.mu.Lock()
	length := time.Duration(float64(limit) * d.random.Float64() * d.random.Float64())
	d.mu.Unlock()
	select {
	case <-d.over:
		return false
	case <-time.After(length):
		return true
	}
}

// begin chooses a master that is well, and what is to happen to it.
func (d *disturber) begin() (master int, f fault) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for master = d.random.IntN(len(d.fleet.masters)); d.busy[master]; {
		master = d.random.IntN(len(d.fleet.masters))
	}
	d.busy[master] = true
	f = d.kinds[d.random.IntN(len(d.kinds))]
	d.counts[f.name]++
	return master, f
}

func (d *disturber) end(master int, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.busy, master)
	if err != nil {
		d.err = errors.Join(d.err, fmt.Errorf("master %d: %w", master, err))
	}
}

// disturbances are the faults in which a master loses nothing.
func disturbances() []fault {
	return []fault{
		faultNamed("stopped"),
		{"cut off", true, cutFrom(0, 1), healedFor(0, 1)},
		{"cut off from the first proxy", true, cutFrom(0), healedFor(0)},
		{"cut off from the second proxy", true, cutFrom(1), healedFor(1)},
	}
}

func cutFrom(proxies ...int) func(*fleet, int) error {
	return func(f *fleet, master int) error { return f.eachLink(proxies, master, (*harness.Link).Cut) }
}

func healedFor(proxies ...int) func(*fleet, int) error {
	return func(f *fleet, master int) error { return f.eachLink(proxies, master, (*harness.Link).Heal) }
}

// eachLink does something to the links of these proxies to one master.
func (f *fleet) eachLink(proxies []int, master int, do func(*harness.Link) error) error {
	var errs []error
	for _, proxy := range proxies {
		errs = append(errs, do(f.links[proxy][master]))
	}
	return errors.Join(errs...)
}
