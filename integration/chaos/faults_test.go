//go:build integration

package chaos

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"redlock-proxy/internal/redistest/faultlink"
	"redlock-proxy/quorum/guard/marker"
	"redlock-proxy/quorum/guard/script"
)

// fault is a fault of a master that ends after a while.
type fault struct {
	name    string
	absent  bool // the master answers no client while the fault lasts
	forgets bool // the master may have lost locks
	copied  bool // the fault needs an older copy of the master's data
	inflict func(d *disturber, m *master) error
	repair  func(d *disturber, m *master) error
}

func faults() []fault {
	nothing := func(*disturber, *master) error { return nil }
	return []fault{
		{"killed, back with its data", true, false, false,
			func(_ *disturber, m *master) error { return m.Kill() },
			func(_ *disturber, m *master) error { return m.Revive() }},
		{"killed, back without its data", true, true, false,
			func(_ *disturber, m *master) error { return m.Kill() },
			func(_ *disturber, m *master) error { return m.Restart() }},
		{"killed, back with older data", true, true, true,
			func(_ *disturber, m *master) error { return m.Kill() },
			func(_ *disturber, m *master) error { return m.startOn(m.copy) }},
		{"killed, back with the data of another cluster", true, true, false,
			func(_ *disturber, m *master) error { return m.Kill() },
			func(d *disturber, m *master) error { return m.startOn(d.cluster.strange) }},
		{"lying, until it is flushed", false, true, false,
			func(d *disturber, m *master) error { return d.startLying(m) },
			func(d *disturber, m *master) error {
				defer d.liar.CompareAndSwap(m, nil)
				_, err := ask(m.Addr(), "FLUSHALL")
				return err
			}},
		{"stopped", true, false, false,
			func(_ *disturber, m *master) error { return m.Pause() },
			func(_ *disturber, m *master) error { return m.Continue() }},
		{"cut off", true, false, false,
			func(_ *disturber, m *master) error { return eachLink(m.links, (*faultlink.Link).Cut) },
			func(_ *disturber, m *master) error { return eachLink(m.links, (*faultlink.Link).Heal) }},
		{"cut off from some", false, false, false,
			func(d *disturber, m *master) error { return eachLink(d.some(m.links), (*faultlink.Link).Cut) },
			func(_ *disturber, m *master) error { return eachLink(m.links, (*faultlink.Link).Heal) }},
		{"connections reset", false, false, false,
			func(_ *disturber, m *master) error {
				return eachLink(m.links, func(l *faultlink.Link) error { l.Reset(); return nil })
			},
			nothing},
		{"slowed", false, false, false,
			func(d *disturber, m *master) error { return slow(m, d.upTo(150*time.Millisecond)) },
			func(_ *disturber, m *master) error { return slow(m, 0) }},
		{"flushed", false, true, false,
			func(_ *disturber, m *master) error { _, err := ask(m.Addr(), "FLUSHALL"); return err },
			nothing},
		{"clock stepped", false, true, false,
			func(d *disturber, m *master) error { return d.stepClock(m) },
			nothing},
	}
}

func eachLink(links []*faultlink.Link, do func(*faultlink.Link) error) error {
	var errs []error
	for _, link := range links {
		errs = append(errs, do(link))
	}
	return errors.Join(errs...)
}

func slow(m *master, by time.Duration) error {
	return eachLink(m.links, func(l *faultlink.Link) error { l.Delay(by); return nil })
}

const (
	// together is the maximum number of masters that are disturbed at the same time.
	together = masterCount - majority
	// calm is the maximum time between two faults of a slot, and spell the maximum duration of a
	// fault.
	calm  = 400 * time.Millisecond
	spell = time.Second
	// proxySpell is the maximum time for which a proxy is stopped or killed. It is longer than a
	// short lease.
	proxySpell = 2 * time.Second
	// farAhead is the distance by which clocks jump, much longer than any lease.
	farAhead = 10 * time.Minute
	// admission limits the time until a master votes again.
	admission = time.Minute
)

// disturber makes masters and proxies fail at random: at most a minority of the masters and one
// proxy at the same time.
type disturber struct {
	cluster *cluster
	began   time.Time
	over    chan struct{}
	tasks   sync.WaitGroup
	turn    sync.Mutex    // held while waiting for slots
	slots   chan struct{} // one for each disturbed master
	liar    atomic.Pointer[master]

	mu        sync.Mutex
	random    *rand.Rand
	busy      [masterCount]bool
	begun     [masterCount]int    // number of faults of each master
	admitted  [masterCount]string // each master's marker before it lost its data
	down      [proxyCount]bool
	counts    map[string]int
	events    []violation     // the faults and their times
	replacing []gap           // the periods in which masters were replaced
	waited    []time.Duration // until masters that lost their data voted again
	forgot    time.Duration   // time of the last element of waited
	stopped   bool
	err       error
}

func startDisturber(c *cluster, seed uint64, began time.Time) *disturber {
	d := &disturber{
		cluster: c, began: began, over: make(chan struct{}), slots: make(chan struct{}, together),
		random: rand.New(rand.NewPCG(seed, 1)),
		counts: map[string]int{},
	}
	for range together + 1 {
		d.tasks.Go(d.disturbMasters)
	}
	d.tasks.Go(d.disturbProxies)
	return d
}

// stop ends all faults.
func (d *disturber) stop() error {
	d.end()
	d.tasks.Wait()
	return d.err
}

// end prevents new faults.
func (d *disturber) end() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.stopped {
		d.stopped = true
		close(d.over)
	}
}

// fail records an error that a proxy did not cause, or an error that ends the test.
func (d *disturber) fail(err error) {
	if err == nil {
		return
	}
	d.mu.Lock()
	d.err = errors.Join(d.err, err)
	d.mu.Unlock()
	d.end()
}

// faults returns the number of faults.
func (d *disturber) faults() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	total := 0
	for _, n := range d.counts {
		total += n
	}
	return total
}

// disturbMasters makes single masters fail, and sometimes two masters and then a third one.
func (d *disturber) disturbMasters() {
	for d.pause(d.upTo(calm)) {
		d.turn.Lock()
		d.slots <- struct{}{}
		switch many := d.below(20); {
		case many < 5:
			d.slots <- struct{}{}
			d.turn.Unlock()
			d.twoThenAThird()
			continue
		case many == 5:
			d.slots <- struct{}{}
			d.turn.Unlock()
			began := time.Since(d.began)
			d.strike(replaced, d.choose())
			d.mu.Lock()
			d.replacing = append(d.replacing, gap{began, time.Since(d.began)})
			d.mu.Unlock()
			<-d.slots
			<-d.slots
			continue
		}
		d.turn.Unlock()
		f, i := pickFault(d, func(fault) bool { return true }), d.choose()
		if f.copied {
			d.fail(d.cluster.masters()[i].keepCopy())
			d.pause(d.upTo(spell))
		}
		d.strike(f, i)
		<-d.slots
	}
}

// strike disturbs one master until it votes again.
func (d *disturber) strike(f fault, i int) {
	d.fail(d.inflict(f, i))
	d.pause(d.upTo(spell))
	d.fail(d.repair(f, i))
}

// twoThenAThird lets a bare majority grant locks, and then one master of that majority loses its
// data. If the proxies trusted that master immediately, it would grant the locks again. The caller
// holds two slots, which it frees.
func (d *disturber) twoThenAThird() {
	isAbsence := func(f fault) bool { return f.absent && !f.forgets }
	last, third := pickFault(d, func(f fault) bool { return f.forgets }), d.choose()
	if last.copied {
		d.fail(d.cluster.masters()[third].keepCopy())
	}
	two := map[int]fault{}
	for range together {
		i, f := d.choose(), pickFault(d, isAbsence)
		two[i] = f
		d.fail(d.inflict(f, i))
	}
	d.pause(spell/4 + d.upTo(spell))
	for i, f := range two {
		d.fail(d.repair(f, i))
	}
	<-d.slots
	d.strike(last, third)
	<-d.slots
}

func (d *disturber) inflict(f fault, i int) error {
	d.count("master " + f.name)
	d.note(fmt.Sprintf("master %d %s", i, f.name))
	if f.forgets {
		d.admitted[i] = d.cluster.masters()[i].marker().Nonce
	}
	if err := f.inflict(d, d.cluster.masters()[i]); err != nil {
		return fmt.Errorf("master %d %s: %w", i, f.name, err)
	}
	return nil
}

// repair ends a fault. The master counts as disturbed until it votes.
func (d *disturber) repair(f fault, i int) error {
	err := f.repair(d, d.cluster.masters()[i])
	d.note(fmt.Sprintf("master %d is back", i))
	began := time.Now()
	if err == nil {
		err = d.awaitVote(i, f.forgets)
	}
	d.note(fmt.Sprintf("master %d votes", i))
	d.mu.Lock()
	defer d.mu.Unlock()
	d.busy[i] = false
	if f.forgets {
		d.waited = append(d.waited, time.Since(began))
		d.forgot = time.Since(d.began)
	}
	if err != nil {
		return fmt.Errorf("master %d after it was %s: %w", i, f.name, err)
	}
	return nil
}

// awaitVote waits until every proxy reports that a master votes. A master that lost its data must
// be admitted first, because a proxy may not have checked it yet.
func (d *disturber) awaitVote(i int, forgot bool) error {
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) { // polls
		if all, any := d.votes(i); all && any && (!forgot || d.isAdmitted(i)) {
			return nil
		}
		if time.Since(began) > admission {
			return fmt.Errorf("it does not vote within %v after\n%s\n%s", admission,
				d.since(time.Since(d.began)-2*admission), d.cluster.told())
		}
	}
}

// isAdmitted reports whether a master was admitted after it lost its data: its marker is of the
// current process, and differs from the marker before.
func (d *disturber) isAdmitted(i int) bool {
	m := d.cluster.masters()[i]
	info, err := ask(m.Addr(), "INFO", "server")
	if err != nil {
		return false
	}
	mark := m.marker()
	return mark.Nonce != "" && mark.Nonce != d.admitted[i] && strings.Contains(fmt.Sprint(info), "run_id:"+mark.RunID)
}

// marker returns the marker with which a master votes, or an empty marker if it does not vote.
func (m *master) marker() (mark marker.Marker) {
	if text, err := ask(m.Addr(), "GET", script.MarkerKey); err == nil {
		mark = marker.ReadMarker(fmt.Sprint(text)).Value
	}
	return mark
}

// votes reports whether all available proxies report a master as voting, and whether any proxy is
// available.
func (d *disturber) votes(i int) (all, any bool) {
	all = true
	for n, proxy := range d.cluster.proxies {
		if d.isDown(n) {
			continue
		}
		votes, err := proxy.voting(d.cluster.masters())
		if err != nil && d.isDown(n) {
			continue
		}
		any, all = true, all && err == nil && votes[i]
	}
	return all, any
}

// disturbProxies makes one proxy after the other fail.
func (d *disturber) disturbProxies() {
	for d.pause(d.upTo(proxySpell)) {
		i := d.below(proxyCount)
		name, do := "killed", d.killProxy
		if d.chance(2) {
			name, do = "stopped", d.stopProxy
		}
		d.setDown(i, true)
		d.count("proxy " + name)
		d.note(fmt.Sprintf("proxy %d %s", i, name))
		d.fail(do(d.cluster.proxies[i]))
		d.note(fmt.Sprintf("proxy %d is back", i))
		d.setDown(i, false)
	}
}

func (d *disturber) killProxy(p *proxy) error {
	if err := p.process.Kill(); err != nil {
		return err
	}
	d.pause(d.upTo(proxySpell))
	return p.start()
}

func (d *disturber) stopProxy(p *proxy) error {
	if err := p.process.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	d.pause(d.upTo(proxySpell))
	return p.process.Signal(syscall.SIGCONT)
}

// stepClock sets a master's clock forward or back, and waits until the master has noticed it.
func (d *disturber) stepClock(m *master) error {
	before, err := clockOf(m)
	if err != nil {
		return err
	}
	m.steps = (m.steps + 1 + d.below(2)) % 3
	if err := m.step(time.Duration(m.steps-1) * farAhead); err != nil {
		return err
	}
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		now, err := clockOf(m)
		if moved := now - before; err != nil || moved > farAhead/2 || moved < -farAhead/2 {
			return err
		}
	}
	return errors.New("its clock does not move")
}

// clockOf returns the time of a master's clock, since 1970.
func clockOf(m *master) (time.Duration, error) {
	reply, err := ask(m.Addr(), "TIME")
	if err != nil {
		return 0, err
	}
	parts, _ := reply.([]any)
	if len(parts) != 2 {
		return 0, fmt.Errorf("TIME: %v", reply)
	}
	seconds, err := strconv.Atoi(fmt.Sprint(parts[0]))
	return time.Duration(seconds) * time.Second, err
}

// wellBeing records which masters are disturbed, and how often each master was.
type wellBeing struct {
	busy  [masterCount]bool
	begun [masterCount]int
}

func (d *disturber) wellBeing() wellBeing {
	d.mu.Lock()
	defer d.mu.Unlock()
	return wellBeing{d.busy, d.begun}
}

// hadNoFault reports whether a master had no fault between two moments.
func hadNoFault(i int, from, to wellBeing) bool {
	return !from.busy[i] && !to.busy[i] && from.begun[i] == to.begun[i]
}

// choose returns a master without a fault. The master counts as disturbed from now on.
func (d *disturber) choose() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	for {
		if i := d.random.IntN(masterCount); !d.busy[i] {
			d.busy[i] = true
			d.begun[i]++
			return i
		}
	}
}

func pickFault(d *disturber, suits func(fault) bool) fault {
	for all := faults(); ; {
		if f := all[d.below(len(all))]; suits(f) {
			return f
		}
	}
}

// some returns one or two of the links.
func (d *disturber) some(links []*faultlink.Link) []*faultlink.Link {
	first := d.below(len(links))
	return links[first:min(first+1+d.below(2), len(links))]
}

// pause waits for a time. It returns false if the disturber was stopped.
func (d *disturber) pause(length time.Duration) bool {
	select {
	case <-d.over:
		return false
	case <-time.After(length):
		return true
	}
}

func (d *disturber) upTo(limit time.Duration) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	return time.Duration(float64(limit) * d.random.Float64())
}

func (d *disturber) below(n int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.random.IntN(n)
}

// chance returns true once in n times on average.
func (d *disturber) chance(n int) bool { return d.below(n) == 0 }

func (d *disturber) count(kind string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.counts[kind]++
}

func (d *disturber) note(text string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.events = append(d.events, violation{time.Since(d.began), text})
}

// before describes the faults in the seconds before a time.
func (d *disturber) before(at time.Duration) string {
	return d.between(at-6*time.Second, at+time.Second/5)
}

// since describes the faults since a time.
func (d *disturber) since(from time.Duration) string { return d.between(from, math.MaxInt64) }

func (d *disturber) between(from, to time.Duration) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var text strings.Builder
	for _, event := range d.events {
		if event.at > from && event.at < to {
			fmt.Fprintln(&text, "   ", event)
		}
	}
	return text.String()
}

func (d *disturber) isDown(proxy int) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.down[proxy]
}

func (d *disturber) setDown(proxy int, down bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.down[proxy] = down
}
