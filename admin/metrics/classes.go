package metrics

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"redlock-proxy/quorum"
)

// otherClass is the class of the keys that match no pattern.
const otherClass = "other"

// Classes divides keys into classes.
type Classes struct {
	// Names holds the class of each pattern. Several patterns may have the same class. If it is
	// empty, the metrics have no label class.
	Names []string
	// IndexOf returns the index of the first pattern that matches a key on the masters, or -1. It
	// must not wait.
	IndexOf func(key string) int
}

// class holds the metrics of the locks of one class.
type class struct {
	name         string // empty if there are no classes
	waits, holds prometheus.Histogram
	renewals     prometheus.Counter
	losses       []prometheus.Counter // by reason
}

// classTable is one division of the keys into classes. It is immutable.
type classTable struct {
	indexOf   func(key string) int // nil if there are no classes
	byPattern []*class
	other     *class
}

// of returns the class of a key. It allocates nothing.
func (t *classTable) of(key quorum.Key) *class {
	if t.indexOf != nil {
		if i := t.indexOf(key.Name); i >= 0 {
			return t.byPattern[i]
		}
	}
	return t.other
}

// all returns each class once.
func (t *classTable) all() []*class {
	all := []*class{t.other}
	for _, c := range t.byPattern {
		if !slices.Contains(all, c) {
			all = append(all, c)
		}
	}
	return all
}

// classMetrics holds the metrics by class. It implements prometheus.Collector, without a
// description: whether the metrics have the label class changes with SetClasses.
type classMetrics struct {
	lossReasons []string
	table       atomic.Pointer[classTable]
}

func newClassMetrics(registry prometheus.Registerer, lossReasons []string) *classMetrics {
	m := &classMetrics{lossReasons: lossReasons}
	m.set(Classes{})
	registry.MustRegister(m)
	return m
}

// of returns the current class of a key.
func (m *classMetrics) of(key quorum.Key) *class { return m.table.Load().of(key) }

// set replaces the classes. A class that remains keeps its counts.
func (m *classMetrics) set(classes Classes) {
	known := map[string]*class{}
	if previous := m.table.Load(); previous != nil {
		for _, c := range previous.all() {
			known[c.name] = c
		}
	}
	named := func(name string) *class {
		if known[name] == nil {
			known[name] = newClass(name, m.lossReasons)
		}
		return known[name]
	}
	if len(classes.Names) == 0 {
		m.table.Store(&classTable{other: named("")})
		return
	}
	t := &classTable{indexOf: classes.IndexOf, other: named(otherClass)}
	for _, name := range classes.Names {
		t.byPattern = append(t.byPattern, named(name))
	}
	m.table.Store(t)
}

// newClass returns the metrics of a class. Without a name, they have no label class.
func newClass(name string, lossReasons []string) *class {
	labels := prometheus.Labels{}
	if name != "" {
		labels["class"] = name
	}
	c := &class{
		name: name,
		waits: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "redlock_lock_wait_seconds", Buckets: waitBuckets(), ConstLabels: labels,
			Help: "Time until a LOCK that may wait (BLOCK) was answered, whatever its result. An MLOCK counts once for each key.",
		}),
		holds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "redlock_lock_held_seconds", Buckets: leaseBuckets(), ConstLabels: labels,
			Help: "Time from the grant of a lock to its release by its client, both through this proxy.",
		}),
		renewals: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "redlock_lock_renewals_total", ConstLabels: labels,
			Help: "Renewals of locks for clients (KEEPALIVE) that succeeded.",
		}),
	}
	for _, reason := range lossReasons {
		ofReason := prometheus.Labels{"reason": reason}
		if name != "" {
			ofReason["class"] = name
		}
		c.losses = append(c.losses, prometheus.NewCounter(prometheus.CounterOpts{
			Name: "redlock_kept_locks_lost_total", ConstLabels: ofReason,
			Help: "Locks that the proxy renewed for a client (KEEPALIVE) and that were lost, by reason.",
		}))
	}
	return c
}

// waitBuckets returns the buckets, in seconds, for the time that clients wait for locks.
func waitBuckets() []float64 { return []float64{.001, .005, .025, .1, .5, 1, 2.5, 5, 10, 30, 60, 300} }

// leaseBuckets returns the buckets, in seconds, for the time that clients hold locks.
func leaseBuckets() []float64 {
	return []float64{.1, .5, 1, 5, 10, 30, 60, 300, 900, 3600, 4 * 3600, 24 * 3600}
}

// Describe implements prometheus.Collector.
func (m *classMetrics) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (m *classMetrics) Collect(out chan<- prometheus.Metric) {
	for _, c := range m.table.Load().all() {
		c.waits.Collect(out)
		c.holds.Collect(out)
		c.renewals.Collect(out)
		for _, losses := range c.losses {
			losses.Collect(out)
		}
	}
}

// SetClasses divides the locks into classes from now on. It keeps the counts of each class that
// remains, and drops all other counts.
func (m *Metrics) SetClasses(classes Classes) { m.meters.classes.set(classes) }

// RecordRelease records for how long a client held a lock that it has released.
func (m *Metrics) RecordRelease(key quorum.Key, held time.Duration) {
	m.meters.classes.of(key).holds.Observe(held.Seconds())
}

// CountRenewal counts a renewal of a lock that the proxy keeps for a client.
func (m *Metrics) CountRenewal(key quorum.Key) { m.meters.classes.of(key).renewals.Inc() }

// CountLoss counts a lost lock that the proxy kept for a client. It ignores a reason that New did
// not get.
func (m *Metrics) CountLoss(key quorum.Key, reason string) {
	if i := slices.Index(m.meters.classes.lossReasons, reason); i >= 0 {
		m.meters.classes.of(key).losses[i].Inc()
	}
}
