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

// Disturber stops masters, or cuts them off from one or both proxies, and restores them, at random.
// At most two of the five masters are disturbed at the same time.
type Disturber struct {
	fleet   *kit.Fleet
	kinds   []Fault
	stopped chan struct{}
	tasks   sync.WaitGroup

	mu     sync.Mutex
	random *rand.Rand
	busy   map[int]bool // masters that are being disturbed
	counts map[string]int
	err    error
}

// minority is the number of masters, of five, that may fail at the same time.
const minority = 2

// StartDisturber disturbs the masters of a fleet until Stop. kinds lists the possible faults. The
// same seed repeats the random choices.
func StartDisturber(f *kit.Fleet, seed uint64, kinds ...Fault) *Disturber {
	d := &Disturber{
		fleet: f, kinds: kinds, stopped: make(chan struct{}), random: rand.New(rand.NewPCG(seed, 1)),
		busy: map[int]bool{}, counts: map[string]int{},
	}
	for range minority {
		d.tasks.Go(d.disturb)
	}
	return d
}

// Stop restores all masters. It returns the number of each fault, and the errors.
func (d *Disturber) Stop() (map[string]int, error) {
	close(d.stopped)
	d.tasks.Wait()
	return d.counts, d.err
}

// disturb makes one master after the other fail for a while.
func (d *Disturber) disturb() {
	for d.pause(time.Second) {
		master, fault := d.begin()
		err := fault.Inflict(d.fleet, master)
		d.pause(time.Second)
		d.end(master, errors.Join(err, fault.Mend(d.fleet, master)))
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

// begin chooses a master without a fault, and a fault for it.
func (d *Disturber) begin() (master int, f Fault) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for master = d.random.IntN(len(d.fleet.Masters)); d.busy[master]; {
		master = d.random.IntN(len(d.fleet.Masters))
	}
	d.busy[master] = true
	f = d.kinds[d.random.IntN(len(d.kinds))]
	d.counts[f.Name]++
	return master, f
}

func (d *Disturber) end(master int, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.busy, master)
	if err != nil {
		d.err = errors.Join(d.err, fmt.Errorf("master %d: %w", master, err))
	}
}

// Disturbances returns the faults in which a master loses no data.
func Disturbances() []Fault {
	return []Fault{
		Named("stopped"),
		{"cut off", true, cutFrom(0, 1), healedFor(0, 1)},
		{"cut off from the first proxy", true, cutFrom(0), healedFor(0)},
		{"cut off from the second proxy", true, cutFrom(1), healedFor(1)},
	}
}

func cutFrom(proxies ...int) func(*kit.Fleet, int) error {
	return func(f *kit.Fleet, master int) error { return eachLink(f, proxies, master, (*faultlink.Link).Cut) }
}

func healedFor(proxies ...int) func(*kit.Fleet, int) error {
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
