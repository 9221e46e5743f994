package metrics

import (
	"context"
	"errors"
	"net"
	"os"

	"github.com/prometheus/client_golang/prometheus"

	"redlock-proxy/quorum"
)

// noQuorumCause is the reason for a NOQUORUM reply.
type noQuorumCause int

const (
	causeLate noQuorumCause = iota
	causeUnclear
	causeUndetermined
	causeQuarantine
	causeUnfit
	causeTimeout
	causeDown
	causeCount // the number of causes
)

// String returns the value of the label cause.
func (c noQuorumCause) String() string {
	return [causeCount]string{"late", "unclear", "open", "quarantine", "unfit", "timeout", "down"}[c]
}

// causeOf returns the cause of an error. If the errors of the masters differ, it returns the first
// cause that any master has, in this order: quarantine, unfit, timeout, down.
func causeOf(err *quorum.NoQuorumError) noQuorumCause {
	var quarantineErr *quorum.QuarantineError
	var unfitErr *quorum.UnfitError
	switch {
	case err.AgreementTime > 0:
		return causeLate
	case err.Unclear:
		return causeUnclear
	case err.HasMajority():
		return causeUndetermined
	case errors.As(err, &quarantineErr):
		return causeQuarantine
	case errors.As(err, &unfitErr):
		return causeUnfit
	case isTimeout(err):
		return causeTimeout
	default:
		return causeDown
	}
}

// isTimeout reports whether any master did not answer in time.
func isTimeout(err error) bool {
	var netErr net.Error
	return errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded) ||
		errors.As(err, &netErr) && netErr.Timeout()
}

// causeCounters counts the operations that ended with NOQUORUM, by cause.
type causeCounters struct {
	byCause [causeCount]prometheus.Counter
}

func newCauseCounters(registry prometheus.Registerer) *causeCounters {
	vec := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "redlock_lock_no_quorum_total",
		Help: "Operations on locks that ended with NOQUORUM, by cause.",
	}, []string{"cause"})
	registry.MustRegister(vec)
	counters := &causeCounters{}
	for cause := range causeCount {
		counters.byCause[cause] = vec.WithLabelValues(cause.String())
	}
	return counters
}

func (c *causeCounters) count(err error) {
	if none, ok := errors.AsType[*quorum.NoQuorumError](err); ok {
		c.byCause[causeOf(none)].Inc()
	}
}
