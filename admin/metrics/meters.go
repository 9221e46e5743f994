package metrics

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"redlock-proxy/quorum"
)

// result is how an operation ended.
type result int

const (
	ok result = iota
	held
	notHeld
	noQuorum
	contended
	tooShort
	foreign
	aborted
	failed
	results // how many there are
)

// String is the value of the label.
func (r result) String() string {
	return [results]string{"ok", "held", "not_held", "no_quorum", "contended", "too_short", "foreign", "aborted", "failed"}[r]
}

// resultOf is that of an operation that ended with an error.
func resultOf(ctx context.Context, err error) result {
	switch {
	case err == nil:
		return ok
	case errors.Is(err, quorum.ErrHeld):
		return held
	case errors.Is(err, quorum.ErrNotHeld):
		return notHeld
	case isNoQuorum(err):
		return noQuorum
	case errors.Is(err, quorum.ErrContended):
		return contended
	case errors.Is(err, quorum.ErrTooShort):
		return tooShort
	case errors.Is(err, quorum.ErrForeign):
		return foreign
	case ctx.Err() != nil:
		return aborted
	default:
		return failed
	}
}

// isNoQuorum is by itself, since what it looks for costs memory.
func isNoQuorum(err error) bool {
	var none *quorum.NoQuorumError
	return errors.As(err, &none)
}

// meter counts one operation. All of it is looked up once.
type meter struct {
	ended [results]prometheus.Counter
	took  prometheus.Observer
	lost  *losses
}

// end notes that an operation ended, without a wait for others before.
func (m *meter) end(ctx context.Context, began time.Time, err *error) {
	m.took.Observe(time.Since(began).Seconds())
	m.count(ctx, *err)
}

func (m *meter) count(ctx context.Context, err error) {
	r := resultOf(ctx, err)
	m.ended[r].Inc()
	if r == noQuorum {
		m.lost.count(err)
	}
}

// meters are those of all operations.
type meters struct {
	acquire, release, extend, read, update meter
	waited, lease                          prometheus.Histogram
	withdrawn                              prometheus.Counter
}

func newMeters(registry prometheus.Registerer) meters {
	ended := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "redlock_lock_requests_total", Help: "Operations on locks, by how they ended.",
	}, []string{"operation", "result"})
	took := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "redlock_lock_duration_seconds", Buckets: shortBuckets(),
		Help: "Time that an operation on locks took, however it ended. A LOCK that may wait (BLOCK) is not among them.",
	}, []string{"operation"})
	lost := newLosses(registry)
	meterOf := func(operation string) meter {
		m := meter{took: took.WithLabelValues(operation), lost: lost}
		for r := range results {
			m.ended[r] = ended.WithLabelValues(operation, r.String())
		}
		return m
	}
	all := meters{
		acquire: meterOf("acquire"), release: meterOf("release"), extend: meterOf("extend"), read: meterOf("read"), update: meterOf("update"),
		waited: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "redlock_lock_wait_seconds", Buckets: []float64{.001, .005, .025, .1, .5, 1, 2.5, 5, 10, 30, 60, 300},
			Help: "Time until a LOCK that may wait (BLOCK) was answered, however it ended.",
		}),
		lease: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "redlock_lock_lease_seconds", Buckets: []float64{.1, .5, 1, 5, 10, 30, 60, 300, 900, 3600, 4 * 3600, 24 * 3600},
			Help: "TTLs of the locks that were granted, without those that have none.",
		}),
		withdrawn: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "redlock_lock_withdrawals_total", Help: "Locks released because their client had gone before it got the reply.",
		}),
	}
	registry.MustRegister(ended, took, all.waited, all.lease, all.withdrawn)
	return all
}

// granted takes the TTL of a grant.
func (m *meters) granted(ttl time.Duration, err error) {
	if err == nil && ttl >= 0 { // else quorum.Endless
		m.lease.Observe(ttl.Seconds())
	}
}
