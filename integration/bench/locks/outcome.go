package locks

import (
	"time"

	"redlock-proxy/integration/bench/figures"
)

// outcome holds the figures of one run, or the medians of several runs.
type outcome struct {
	rate             float64 // pairs per second
	lockP50, lockP99 time.Duration
	pairP50, pairP99 time.Duration
	cpu              cpuPerPair
	otherCores       float64      // cores that other processes used within the window
	order            serviceOrder // only for runs on one key
	errors           map[string]int
}

// cpuPerPair holds the CPU time per pair in microseconds.
type cpuPerPair struct{ load, proxy, masters, total float64 }

// errorCount returns the number of locks and unlocks that failed.
func (o outcome) errorCount() int {
	n := 0
	for _, count := range o.errors {
		n += count
	}
	return n
}

// outcome computes the figures of one run.
func (r record) outcome() outcome {
	var locks, pairs []time.Duration
	done := 0
	for _, p := range r.pairs {
		if r.window.contains(p.releaseTime) {
			done++
		}
		if r.window.isAfterWarmUp(p) {
			locks = append(locks, p.grantTime-p.sendTime)
			pairs = append(pairs, p.releaseTime-p.sendTime)
		}
	}
	o := outcome{rate: float64(done) / r.window.length().Seconds(), cpu: r.cpu.perPair(done), errors: r.errors}
	o.otherCores = r.cpu.otherProcesses().Seconds() / r.window.length().Seconds()
	o.lockP50, o.lockP99 = figures.Percentile(locks, 50), figures.Percentile(locks, 99)
	o.pairP50, o.pairP99 = figures.Percentile(pairs, 50), figures.Percentile(pairs, 99)
	if r.shared {
		o.order = serviceOrderOf(r.pairs, r.window, r.clients)
	}
	return o
}

// perPair returns the CPU time per pair, or zero without pairs.
func (c cpuTimes) perPair(pairs int) cpuPerPair {
	if pairs == 0 {
		return cpuPerPair{}
	}
	each := func(spent time.Duration) float64 { return float64(spent.Nanoseconds()) / 1e3 / float64(pairs) }
	return cpuPerPair{load: each(c.load), proxy: each(c.proxy), masters: each(c.masters), total: each(c.total())}
}

// medians returns the medians of the figures. Exceptions: errors holds the sums, otherCores the
// maximum, and order combines the orders of service.
func medians(rounds []outcome) outcome {
	number := func(get func(outcome) float64) float64 { return figures.Median(valuesOf(rounds, get)) }
	duration := func(get func(outcome) time.Duration) time.Duration {
		return time.Duration(number(func(o outcome) float64 { return float64(get(o)) }))
	}
	all := outcome{
		rate:    number(func(o outcome) float64 { return o.rate }),
		lockP50: duration(func(o outcome) time.Duration { return o.lockP50 }),
		lockP99: duration(func(o outcome) time.Duration { return o.lockP99 }),
		pairP50: duration(func(o outcome) time.Duration { return o.pairP50 }),
		pairP99: duration(func(o outcome) time.Duration { return o.pairP99 }),
		cpu: cpuPerPair{
			load:    number(func(o outcome) float64 { return o.cpu.load }),
			proxy:   number(func(o outcome) float64 { return o.cpu.proxy }),
			masters: number(func(o outcome) float64 { return o.cpu.masters }),
			total:   number(func(o outcome) float64 { return o.cpu.total }),
		},
		errors: map[string]int{},
	}
	for i, o := range rounds {
		all.add(o, i == 0)
	}
	return all
}

// add adds the figures that are not medians.
func (o *outcome) add(round outcome, first bool) {
	o.otherCores = max(o.otherCores, round.otherCores)
	for text, n := range round.errors {
		o.errors[text] += n
	}
	if first {
		o.order = round.order
		return
	}
	o.order = o.order.add(round.order)
}
