package faults

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest/faultlink"
)

// Disturber causes faults of random masters, each for a while, and repairs them. At most two of the
// five masters are disturbed at the same time.
type Disturber struct {
	fleet   *kit.Fleet
	kinds   []Fault
	stopped chan struct{}
	tasks   sync.WaitGroup

	mu        sync.Mutex
	random    *rand.Rand
	disturbed map[int]bool // masters that are being disturbed
	counts    map[string]int
	err       error
}

// minority is the number of masters, of five, that may fail at the same time.
const minority = 2

// StartDisturber disturbs the masters of a fleet until Stop. kinds lists the possible faults. The
// same seed repeats the random choices.
func StartDisturber(f *kit.Fleet, seed uint64, kinds ...Fault) *Disturber {
	d := &Disturber{
		fleet: f, kinds: kinds, stopped: make(chan struct{}), random: rand.New(rand.NewPCG(seed, 1)),
		disturbed: map[int]bool{}, counts: map[string]int{},
	}
	for range minority {
		d.tasks.Go(d.disturbRepeatedly)
	}
	return d
}

// Stop repairs all faults. It returns the numbers of faults, by name, and the errors.
func (d *Disturber) Stop() (map[string]int, error) {
	close(d.stopped)
	d.tasks.Wait()
	return d.counts, d.err
}

// disturbRepeatedly disturbs one master after another, each for a while.
func (d *Disturber) disturbRepeatedly() {
	for d.pause(time.Second) {
		master, fault := d.chooseFault()
		err := fault.Cause(d.fleet, master)
		d.pause(time.Second)
		d.endFault(master, errors.Join(err, fault.Repair(d.fleet, master)))
	}
}

// pause waits for a random time of up to limit, often for much less. It returns false after Stop.
func (d *Disturber) pause(limit time.Duration) bool {
	d.mu.Lock()
	length := time.Duration(float64(limit) * d.random.Float64() * d.random.Float64())
	d.mu.Unlock()
	select {
	case <-d.stopped:
		return false
	case <-time.After(length):
		return true
	}
}

// chooseFault chooses a master without a fault, and a fault for it.
func (d *Disturber) chooseFault() (master int, f Fault) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for master = d.random.IntN(len(d.fleet.Masters)); d.disturbed[master]; {
		master = d.random.IntN(len(d.fleet.Masters))
	}
	d.disturbed[master] = true
	f = d.kinds[d.random.IntN(len(d.kinds))]
	d.counts[f.Name]++
	return master, f
}

func (d *Disturber) endFault(master int, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.disturbed, master)
	if err != nil {
		d.err = errors.Join(d.err, fmt.Errorf("master %d: %w", master, err))
	}
}

// FaultsWithoutDataLoss returns the faults in which a master loses no data.
func FaultsWithoutDataLoss() []Fault {
	return []Fault{
		faultNamed("stopped"),
		{"cut off", true, cutFor(0, 1), healFor(0, 1)},
		{"cut off from the first proxy", true, cutFor(0), healFor(0)},
		{"cut off from the second proxy", true, cutFor(1), healFor(1)},
	}
}

func cutFor(proxies ...int) func(*kit.Fleet, int) error {
	return func(f *kit.Fleet, master int) error { return eachLink(f, proxies, master, (*faultlink.Link).Cut) }
}

func healFor(proxies ...int) func(*kit.Fleet, int) error {
	return func(f *kit.Fleet, master int) error { return eachLink(f, proxies, master, (*faultlink.Link).Heal) }
}

// eachLink calls do with the links of these proxies to one master.
func eachLink(f *kit.Fleet, proxies []int, master int, do func(*faultlink.Link) error) error {
	var errs []error
	for _, proxy := range proxies {
		errs = append(errs, do(f.Links[proxy][master]))
	}
	return errors.Join(errs...)
}
