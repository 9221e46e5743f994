package metrics

import (
	"context"
	"errors"
	"net"
	"os"

	"github.com/prometheus/client_golang/prometheus"

	"redlock-proxy/quorum"
)

// loss is why an operation was answered NOQUORUM.
type loss int

const (
	late loss = iota
	unclear
	open
	quarantine
	unfit
	timeout
	down
	lossCount // how many there are
)

// String is the value of the label.
func (l loss) String() string {
	return [lossCount]string{"late", "unclear", "open", "quarantine", "unfit", "timeout", "down"}[l]
}

// lossOf is the class of an error. Where the masters differ, the first of these that any of them
// has: quarantine, unfit, timeout, down.
func lossOf(err *quorum.NoQuorumError) loss {
	var waits *quorum.QuarantineError
	var bad *quorum.UnfitError
	switch {
	case err.Late > 0:
		return late
	case err.Unclear:
		return unclear
	case err.HasMajority():
		return open
	case errors.As(err, &waits):
		return quarantine
	case errors.As(err, &bad):
		return unfit
	case isTimeout(err):
		return timeout
	default:
		return down
	}
}

// isTimeout reports whether any master did not answer in time.
func isTimeout(err error) bool {
	var slow net.Error
	return errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded) || errors.As(err, &slow) && slow.Timeout()
}

// losses count them.
type losses struct{ by [lossCount]prometheus.Counter }

func newLosses(registry prometheus.Registerer) *losses {
	vec := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "redlock_lock_no_quorum_total", Help: "Operations on locks that ended with NOQUORUM, by the class of the cause.",
	}, []string{"cause"})
	registry.MustRegister(vec)
	l := &losses{}
	for which := range lossCount {
		l.by[which] = vec.WithLabelValues(which.String())
	}
	return l
}

func (l *losses) count(err error) {
	if none, ok := errors.AsType[*quorum.NoQuorumError](err); ok {
		l.by[lossOf(none)].Inc()
	}
}
