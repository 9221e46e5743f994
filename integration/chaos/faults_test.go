//go:build integration

package chaos

import (
	"cmp"
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
	name        string
	unavailable bool // the master replies to no client while the fault lasts
	losesData   bool // the master may have lost locks
	needsCopy   bool // the fault needs an older copy of the master's data
	stepsClock  bool // the fault steps the master's clock
	inflict     func(d *disturber, m *master) error
	repair      func(d *disturber, m *master) error
}

func faults() []fault {
	nothing := func(*disturber, *master) error { return nil }
	return []fault{
		{"killed, back with its data", true, false, false, false,
			func(_ *disturber, m *master) error { return m.Kill() },
			func(_ *disturber, m *master) error { return m.RestartWithData() }},
		{"killed, back without its data", true, true, false, false,
			func(_ *disturber, m *master) error { return m.Kill() },
			func(_ *disturber, m *master) error { return m.Restart() }},
		{"killed, back with older data", true, true, true, false,
			func(_ *disturber, m *master) error { return m.Kill() },
			func(_ *disturber, m *master) error { return m.startOn(m.copyDir) }},
		{"killed, back with the data of another cluster", true, true, false, false,
			func(_ *disturber, m *master) error { return m.Kill() },
			func(d *disturber, m *master) error { return m.startOn(d.cluster.foreignDataDir) }},
		{"lying, until it is flushed", false, true, false, false,
			func(d *disturber, m *master) error { return d.storeFalseMarker(m) },
			func(d *disturber, m *master) error {
				defer d.falseMaster.CompareAndSwap(m, nil)
				_, err := do(m.Addr(), "FLUSHALL")
				return err
			}},
		{"stopped", true, false, false, false,
			func(_ *disturber, m *master) error { return m.Pause() },
			func(_ *disturber, m *master) error { return m.Continue() }},
		{"cut off", true, false, false, false,
			func(_ *disturber, m *master) error { return eachLink(m.links, (*faultlink.Link).Cut) },
			func(_ *disturber, m *master) error { return eachLink(m.links, (*faultlink.Link).Heal) }},
		{"cut off from some", false, false, false, false,
			func(d *disturber, m *master) error { return eachLink(d.pickLinks(m.links), (*faultlink.Link).Cut) },
			func(_ *disturber, m *master) error { return eachLink(m.links, (*faultlink.Link).Heal) }},
		{"connections reset", false, false, false, false,
			func(_ *disturber, m *master) error {
				return eachLink(m.links, func(l *faultlink.Link) error { l.Reset(); return nil })
			},
			nothing},
		{"slowed", false, false, false, false,
			func(d *disturber, m *master) error { return slow(m, d.randomDuration(150*time.Millisecond)) },
			func(_ *disturber, m *master) error { return slow(m, 0) }},
		{"flushed", false, true, false, false,
			func(_ *disturber, m *master) error { _, err := do(m.Addr(), "FLUSHALL"); return err },
			nothing},
		{"clock stepped", false, true, false, true,
			func(d *disturber, m *master) error { return d.stepClock(m) },
			nothing},
	}
}

func eachLink(links []*faultlink.Link, action func(*faultlink.Link) error) error {
	var errs []error
	for _, link := range links {
		errs = append(errs, action(link))
	}
	return errors.Join(errs...)
}

func slow(m *master, by time.Duration) error {
	return eachLink(m.links, func(l *faultlink.Link) error { l.Delay(by); return nil })
}

const (
	// maxDisturbed is the maximum number of masters that are disturbed at the same time.
	maxDisturbed = masterCount - majority
	// maxPause is the maximum pause of a task before it waits for the slot of its next fault.
	// maxDuration is the maximum duration of a fault, without the time until the master votes.
	maxPause    = 400 * time.Millisecond
	maxDuration = time.Second
	// maxProxyDuration is the maximum time for which a proxy is stopped or killed. It is longer
	// than a short lease.
	maxProxyDuration = 2 * time.Second
	// clockJump is the distance by which clocks jump, much longer than any lease.
	clockJump = 10 * time.Minute
	// votingTimeout limits the time until a master votes again.
	votingTimeout = 3 * time.Minute
	// usualVotingTime is the time after which a report of a failure shows why a master does not
	// vote.
	usualVotingTime = 5 * time.Second
)

// disturber makes masters and proxies fail at random: at most a minority of the masters and one
// proxy at the same time.
type disturber struct {
	cluster     *cluster
	startedAt   time.Time
	stopping    chan struct{}
	tasks       sync.WaitGroup
	slotMutex   sync.Mutex    // held while waiting for slots
	slots       chan struct{} // one for each disturbed master
	falseMaster atomic.Pointer[master]

	mu                sync.Mutex
	random            *rand.Rand
	disturbed         [masterCount]bool
	faultCount        [masterCount]int    // number of faults of each master
	markerBeforeLoss  [masterCount]string // each master's marker before it lost its data
	proxyDown         [proxyCount]bool
	counts            map[string]int
	events            []violation     // the faults and their times
	replacements      []gap           // the periods in which masters were replaced
	votingDelays      []time.Duration // times until masters that lost their data voted again
	lastVoteAfterLoss time.Duration   // time at which the last element of votingDelays was added
	stopped           bool
	err               error
}

func startDisturber(c *cluster, seed uint64, startedAt time.Time) *disturber {
	d := &disturber{
		cluster: c, startedAt: startedAt, stopping: make(chan struct{}), slots: make(chan struct{}, maxDisturbed),
		random: rand.New(rand.NewPCG(seed, 1)),
		counts: map[string]int{},
	}
	for range maxDisturbed + 1 {
		d.tasks.Go(d.disturbMasters)
	}
	d.tasks.Go(d.disturbProxies)
	return d
}

// stop ends all faults, waits until all masters vote, and returns the errors of the run.
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
		close(d.stopping)
	}
}

// fail records an error, and prevents new faults.
func (d *disturber) fail(err error) {
	if err == nil {
		return
	}
	d.mu.Lock()
	d.err = errors.Join(d.err, err)
	d.mu.Unlock()
	d.end()
}

// totalFaults returns the number of faults.
func (d *disturber) totalFaults() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	total := 0
	for _, n := range d.counts {
		total += n
	}
	return total
}

// disturbMasters makes one master after the other fail. Sometimes it makes two masters fail, and
// then a third master, or it replaces a master.
func (d *disturber) disturbMasters() {
	for d.pause(d.randomDuration(maxPause)) {
		d.slotMutex.Lock()
		d.slots <- struct{}{}
		switch choice := d.randomInt(20); {
		case choice < 5:
			d.slots <- struct{}{}
			d.slotMutex.Unlock()
			d.disturbTwoThenOne()
			continue
		case choice == 5:
			d.slots <- struct{}{}
			d.slotMutex.Unlock()
			startedAt := time.Since(d.startedAt)
			d.runFault(replacement, d.pickMaster())
			d.mu.Lock()
			d.replacements = append(d.replacements, gap{startedAt, time.Since(d.startedAt)})
			d.mu.Unlock()
			<-d.slots
			<-d.slots
			continue
		}
		d.slotMutex.Unlock()
		f, i := pickFault(d, func(fault) bool { return true }), d.pickMaster()
		if f.needsCopy {
			d.fail(d.cluster.masters()[i].copyData())
			d.pause(d.randomDuration(maxDuration))
		}
		d.runFault(f, i)
		<-d.slots
	}
}

// runFault disturbs one master until it votes again.
func (d *disturber) runFault(f fault, i int) {
	d.fail(d.inflict(f, i))
	d.pause(d.randomDuration(maxDuration))
	d.fail(d.repair(f, i))
}

// disturbTwoThenOne lets a bare majority grant locks, and then one master of that majority loses
// its data. If the proxies trusted that master immediately, it would grant the locks again.
// disturbTwoThenOne frees the two slots that its caller holds.
func (d *disturber) disturbTwoThenOne() {
	isAbsence := func(f fault) bool { return f.unavailable && !f.losesData }
	lastFault, thirdMaster := pickFault(d, func(f fault) bool { return f.losesData }), d.pickMaster()
	if lastFault.needsCopy {
		d.fail(d.cluster.masters()[thirdMaster].copyData())
	}
	firstFaults := map[int]fault{}
	for range maxDisturbed {
		i, f := d.pickMaster(), pickFault(d, isAbsence)
		firstFaults[i] = f
		d.fail(d.inflict(f, i))
	}
	d.pause(maxDuration/4 + d.randomDuration(maxDuration))
	for i, f := range firstFaults {
		d.fail(d.repair(f, i))
	}
	<-d.slots
	d.runFault(lastFault, thirdMaster)
	<-d.slots
}

func (d *disturber) inflict(f fault, i int) error {
	d.countFault("master " + f.name)
	d.addEvent(fmt.Sprintf("master %d %s", i, f.name))
	if f.losesData {
		d.markerBeforeLoss[i] = d.cluster.masters()[i].marker().Nonce
	}
	if err := f.inflict(d, d.cluster.masters()[i]); err != nil {
		return fmt.Errorf("master %d %s: %w", i, f.name, err)
	}
	return nil
}

// repair ends a fault. The master counts as disturbed until it votes.
func (d *disturber) repair(f fault, i int) error {
	err := f.repair(d, d.cluster.masters()[i])
	d.addEvent(fmt.Sprintf("master %d is back", i))
	startedAt := time.Now()
	if err == nil {
		err = d.awaitVote(i, f)
	}
	d.addEvent(fmt.Sprintf("master %d votes", i))
	d.mu.Lock()
	defer d.mu.Unlock()
	d.disturbed[i] = false
	if f.losesData {
		d.votingDelays = append(d.votingDelays, time.Since(startedAt))
		d.lastVoteAfterLoss = time.Since(d.startedAt)
	}
	if err != nil {
		return fmt.Errorf("master %d after it was %s: %w", i, f.name, err)
	}
	return nil
}

// awaitVote waits until every proxy reports that a master votes. A master that lost its data must
// be admitted first, because a proxy may not have checked it yet. If only the clock stepped, the
// proxies may instead have ignored the master's votes for a while, because they could not tell
// whose clock stepped.
func (d *disturber) awaitVote(i int, f fault) error {
	lastView := ""
	for startedAt := time.Now(); ; time.Sleep(10 * time.Millisecond) { // polls
		isKnown := f.stepsClock && d.isClockKnown(i)
		votes, view := d.votes(i)
		if votes && (!f.losesData || isKnown || d.isAdmitted(i)) {
			return nil
		}
		if time.Since(startedAt) > usualVotingTime && view != lastView {
			d.addEvent(fmt.Sprintf("master %d without a vote:%s", i, view))
			lastView = view
		}
		if time.Since(startedAt) > votingTimeout {
			return fmt.Errorf("it does not vote within %v after\n%s\n%s", votingTimeout,
				d.describeFaultsSince(time.Since(d.startedAt)-2*votingTimeout), d.cluster.describe())
		}
	}
}

// isClockKnown reports whether every available proxy has read a master's clock after its last step.
func (d *disturber) isClockKnown(i int) bool {
	m := d.cluster.masters()[i]
	want := time.Duration(m.clockStep-1) * clockJump
	for n, proxy := range d.cluster.proxies {
		offset, known, err := proxy.clockOffset(m)
		if !d.isDown(n) && (err != nil || !known || (offset-want).Abs() > clockJump/2) {
			return false
		}
	}
	return true
}

// isAdmitted reports whether a master was admitted after it lost its data. Then its marker names
// the current process, and differs from the marker before the loss.
func (d *disturber) isAdmitted(i int) bool {
	m := d.cluster.masters()[i]
	info, err := do(m.Addr(), "INFO", "server")
	if err != nil {
		return false
	}
	current := m.marker()
	return current.Nonce != "" && current.Nonce != d.markerBeforeLoss[i] && strings.Contains(fmt.Sprint(info), "run_id:"+current.RunID)
}

// marker returns the marker that a master stores, or an empty marker if it stores none. A master
// with a marker need not vote.
func (m *master) marker() (mark marker.Marker) {
	if text, err := do(m.Addr(), "GET", script.MarkerKey); err == nil {
		mark = marker.ReadMarker(fmt.Sprint(text)).Value
	}
	return mark
}

// votes reports whether a proxy is available, and all available proxies report a master as voting.
// view describes the report of each available proxy.
func (d *disturber) votes(i int) (votes bool, view string) {
	all := true
	for n, proxy := range d.cluster.proxies {
		if d.isDown(n) {
			continue
		}
		states, err := proxy.masterStates(d.cluster.masters())
		if err != nil && d.isDown(n) {
			continue
		}
		all = all && err == nil && states[i] == stateVoting
		view += fmt.Sprintf(" proxy %d: %s", n, cmp.Or(states[i], "no reply"))
	}
	return all && view != "", view
}

// disturbProxies makes one proxy after the other fail, each chosen at random.
func (d *disturber) disturbProxies() {
	for d.pause(d.randomDuration(maxProxyDuration)) {
		i := d.randomInt(proxyCount)
		name, disturb := "killed", d.killProxy
		if d.oneIn(2) {
			name, disturb = "stopped", d.stopProxy
		}
		d.setDown(i, true)
		d.countFault("proxy " + name)
		d.addEvent(fmt.Sprintf("proxy %d %s", i, name))
		d.fail(disturb(d.cluster.proxies[i]))
		d.addEvent(fmt.Sprintf("proxy %d is back", i))
		d.setDown(i, false)
	}
}

func (d *disturber) killProxy(p *proxy) error {
	if err := p.process.Kill(); err != nil {
		return err
	}
	d.pause(d.randomDuration(maxProxyDuration))
	return p.start()
}

func (d *disturber) stopProxy(p *proxy) error {
	if err := p.process.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	d.pause(d.randomDuration(maxProxyDuration))
	return p.process.Signal(syscall.SIGCONT)
}

// stepClock sets a master's clock forward or back, and waits until the master has noticed it.
func (d *disturber) stepClock(m *master) error {
	before, err := clockTime(m)
	if err != nil {
		return err
	}
	m.clockStep = (m.clockStep + 1 + d.randomInt(2)) % 3
	if err := m.setClock(time.Duration(m.clockStep-1) * clockJump); err != nil {
		return err
	}
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		now, err := clockTime(m)
		if change := now - before; err != nil || change > clockJump/2 || change < -clockJump/2 {
			return err
		}
	}
	return errors.New("its clock does not move")
}

// clockTime returns the time of a master's clock, since 1970.
func clockTime(m *master) (time.Duration, error) {
	reply, err := do(m.Addr(), "TIME")
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

// faultState records the masters that are disturbed, and each master's number of faults.
type faultState struct {
	disturbed  [masterCount]bool
	faultCount [masterCount]int
}

func (d *disturber) faultState() faultState {
	d.mu.Lock()
	defer d.mu.Unlock()
	return faultState{d.disturbed, d.faultCount}
}

// hadNoFault reports whether a master had no fault between two moments.
func hadNoFault(i int, from, to faultState) bool {
	return !from.disturbed[i] && !to.disturbed[i] && from.faultCount[i] == to.faultCount[i]
}

// pickMaster returns a master without a fault. The master counts as disturbed from now on.
func (d *disturber) pickMaster() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	for {
		if i := d.random.IntN(masterCount); !d.disturbed[i] {
			d.disturbed[i] = true
			d.faultCount[i]++
			return i
		}
	}
}

func pickFault(d *disturber, accepts func(fault) bool) fault {
	for list := faults(); ; {
		if f := list[d.randomInt(len(list))]; accepts(f) {
			return f
		}
	}
}

// pickLinks returns one or two of the links.
func (d *disturber) pickLinks(links []*faultlink.Link) []*faultlink.Link {
	first := d.randomInt(len(links))
	return links[first:min(first+1+d.randomInt(2), len(links))]
}

// pause waits for a time. It returns false if the disturber was stopped.
func (d *disturber) pause(duration time.Duration) bool {
	select {
	case <-d.stopping:
		return false
	case <-time.After(duration):
		return true
	}
}

func (d *disturber) randomDuration(limit time.Duration) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	return time.Duration(float64(limit) * d.random.Float64())
}

func (d *disturber) randomInt(n int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.random.IntN(n)
}

// oneIn returns true once in n times on average.
func (d *disturber) oneIn(n int) bool { return d.randomInt(n) == 0 }

func (d *disturber) countFault(kind string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.counts[kind]++
}

func (d *disturber) addEvent(text string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.events = append(d.events, violation{time.Since(d.startedAt), text})
}

// eventsBefore describes the faults in the seconds before a time.
func (d *disturber) eventsBefore(at time.Duration) string {
	return d.eventsBetween(at-6*time.Second, at+time.Second/5)
}

// describeFaultsSince describes the faults since a time.
func (d *disturber) describeFaultsSince(from time.Duration) string {
	return d.eventsBetween(from, math.MaxInt64)
}

func (d *disturber) eventsBetween(from, to time.Duration) string {
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
	return d.proxyDown[proxy]
}

func (d *disturber) setDown(proxy int, down bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.proxyDown[proxy] = down
}
