package metrics

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"redlock-proxy/quorum"
)

// result is the outcome of an operation.
type result int

const (
	resultOK result = iota
	resultHeld
	resultNotHeld
	resultNoQuorum
	resultContended
	resultTooShort
	resultForeign
	resultAborted
	resultFailed
	resultCount // the number of results
)

// String returns the value of the label result.
func (r result) String() string {
	return [resultCount]string{
		"ok", "held", "not_held", "no_quorum", "contended", "too_short", "foreign", "aborted", "failed",
	}[r]
}

// resultOf returns the result of an operation that ended with err.
func resultOf(ctx context.Context, err error) result {
	switch {
	case err == nil:
		return resultOK
	case errors.Is(err, quorum.ErrHeld):
		return resultHeld
	case errors.Is(err, quorum.ErrNotHeld):
		return resultNotHeld
	case isNoQuorum(err):
		return resultNoQuorum
	case errors.Is(err, quorum.ErrContended):
		return resultContended
	case errors.Is(err, quorum.ErrTooShort):
		return resultTooShort
	case errors.Is(err, quorum.ErrForeign):
		return resultForeign
	case ctx.Err() != nil:
		return resultAborted
	default:
		return resultFailed
	}
}

// isNoQuorum reports whether err is a NoQuorumError. It is a separate function so that only rare
// results allocate its variable on the heap.
func isNoQuorum(err error) bool {
	var noQuorumErr *quorum.NoQuorumError
	return errors.As(err, &noQuorumErr)
}

// meter counts the calls of one operation. It holds the metrics, so that a call does not look them
// up.
type meter struct {
	results        [resultCount]prometheus.Counter
	durations      prometheus.Observer
	noQuorumCauses *causeCounters
}

// record records the duration and the result of an operation that did not wait for a holder.
func (m *meter) record(ctx context.Context, start time.Time, err *error) {
	m.durations.Observe(time.Since(start).Seconds())
	m.countResult(ctx, *err)
}

func (m *meter) countResult(ctx context.Context, err error) {
	r := resultOf(ctx, err)
	m.results[r].Inc()
	if r == resultNoQuorum {
		m.noQuorumCauses.count(err)
	}
}

// meters holds the meters of all operations.
type meters struct {
	acquire, release, extend, read, update meter
	classes                                *classMetrics
	leases                                 prometheus.Histogram
	withdrawals, sharedGrants, slotGrants  prometheus.Counter
}

func newMeters(registry prometheus.Registerer, lossReasons []string) meters {
	ended := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "redlock_lock_requests_total", Help: "Operations on locks, by result.",
	}, []string{"operation", "result"})
	took := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "redlock_lock_duration_seconds", Buckets: shortBuckets(),
		Help: "Duration of operations on locks, whatever their result. A LOCK that may wait (BLOCK) is not included.",
	}, []string{"operation"})
	noQuorum := newCauseCounters(registry)
	meterOf := func(operation string) meter {
		m := meter{durations: took.WithLabelValues(operation), noQuorumCauses: noQuorum}
		for r := range resultCount {
			m.results[r] = ended.WithLabelValues(operation, r.String())
		}
		return m
	}
	holders := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "redlock_lock_holders_total", Help: "Granted locks that several clients may hold, by kind.",
	}, []string{"kind"})
	all := meters{
		sharedGrants: holders.WithLabelValues("shared"), slotGrants: holders.WithLabelValues("slots"),
		acquire: meterOf("acquire"), release: meterOf("release"), extend: meterOf("extend"),
		read: meterOf("read"), update: meterOf("update"),
		classes: newClassMetrics(registry, lossReasons),
		leases: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "redlock_lock_lease_seconds", Buckets: leaseBuckets(),
			Help: "TTLs of granted locks. Locks without a TTL are not included.",
		}),
		withdrawals: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "redlock_lock_withdrawals_total",
			Help: "Locks released because their client disconnected before it received the reply.",
		}),
	}
	registry.MustRegister(ended, took, holders, all.leases, all.withdrawals)
	return all
}

// recordWait records how long a request that may wait took, for each of its keys.
func (m *meters) recordWait(keys []quorum.Key, wait time.Duration) {
	for _, key := range keys {
		m.classes.of(key).waits.Observe(wait.Seconds())
	}
}

// recordGrant records the TTL of a lock, and whether several clients may hold it, if it was
// granted. slots has the meaning of quorum.LockRequest.Slots.
func (m *meters) recordGrant(ttl time.Duration, slots int, err error) {
	if err != nil {
		return
	}
	switch {
	case slots == quorum.Unlimited:
		m.sharedGrants.Inc()
	case slots > 0:
		m.slotGrants.Inc()
	}
	if ttl >= 0 { // quorum.NoExpiry is negative
		m.leases.Observe(ttl.Seconds())
	}
}
