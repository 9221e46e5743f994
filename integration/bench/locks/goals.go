package locks

import "redlock-proxy/integration/bench/figures"

// ratioKind describes a comparison of two contenders, mostly of the proxy with another contender.
type ratioKind struct {
	title       string
	numerator   string
	denominator string
	value       func(outcome) float64
}

func rateOf(o outcome) float64    { return o.rate }
func lockP50Of(o outcome) float64 { return float64(o.lockP50) }
func pairP50Of(o outcome) float64 { return float64(o.pairP50) }
func cpuOf(o outcome) float64     { return o.cpu.total }

// The names of ratios, to which goals refer.
const (
	ratioRateRedsync   = "pairs/s, proxy / redsync"
	ratioRateDirect    = "pairs/s, proxy / direct"
	ratioLock50Redsync = "LOCK p50, proxy / redsync"
	ratioPair50Redsync = "pair p50, proxy / redsync"
	ratioCPURedsync    = "CPU per pair, proxy / redsync"
	ratioCPUDirect     = "CPU per pair, proxy / direct"

	ratioRateLockKeys = "pairs/s, lockkeys / proxy"
	ratioCPULockKeys  = "CPU per pair, lockkeys / proxy"

	ratioRateReentrant = "pairs/s, reentrant / proxy"
	ratioRateTelling   = "pairs/s, telling / proxy"

	ratioRateShared  = "pairs/s, shared / proxy"
	ratioRateSlots   = "pairs/s, slots / proxy"
	ratioRateReaders = "pairs/s, readers / proxy"
)

// ratioKinds returns all ratios in the order of the tables.
func ratioKinds() []ratioKind {
	return []ratioKind{
		{ratioRateRedsync, nameProxy, nameRedsync, rateOf},
		{ratioRateDirect, nameProxy, nameDirect, rateOf},
		{ratioLock50Redsync, nameProxy, nameRedsync, lockP50Of},
		{ratioPair50Redsync, nameProxy, nameRedsync, pairP50Of},
		{ratioCPURedsync, nameProxy, nameRedsync, cpuOf},
		{ratioCPUDirect, nameProxy, nameDirect, cpuOf},
		{ratioRateLockKeys, nameLockKeys, nameProxy, rateOf},
		{ratioCPULockKeys, nameLockKeys, nameProxy, cpuOf},
		{ratioRateReentrant, nameReentrant, nameProxy, rateOf},
		{ratioRateTelling, nameTelling, nameProxy, rateOf},
		{ratioRateShared, nameShared, nameProxy, rateOf},
		{ratioRateSlots, nameSlots, nameProxy, rateOf},
		{ratioRateReaders, nameReaders, nameProxy, rateOf},
	}
}

// isMeasured reports whether both contenders were run.
func (k ratioKind) isMeasured(r results) bool {
	return len(r[k.numerator]) > 0 && len(r[k.denominator]) > 0
}

// ratioOf returns the ratio of the figures of the two contenders.
func ratioOf(r results, kind ratioKind) figures.Ratio {
	ours, theirs := r[kind.numerator], r[kind.denominator]
	ratio := figures.RatioOf(valuesOf(ours, kind.value), valuesOf(theirs, kind.value))
	ratio.HasErrors = len(ours) == len(theirs) && errorCount(ours)+errorCount(theirs) > 0
	return ratio
}

func valuesOf(rounds []outcome, value func(outcome) float64) []float64 {
	all := make([]float64, len(rounds))
	for i, o := range rounds {
		all[i] = value(o)
	}
	return all
}

func errorCount(rounds []outcome) int {
	n := 0
	for _, o := range rounds {
		n += o.errorCount()
	}
	return n
}

type goal struct {
	ratio string
	figures.Goal
}

func atLeast(ratio string, bound float64) goal {
	return goal{ratio, figures.Goal{Direction: figures.AtLeast, Bound: bound}}
}

func atMost(ratio string, bound float64) goal {
	return goal{ratio, figures.Goal{Direction: figures.AtMost, Bound: bound}}
}

// judgeOrder returns the verdict on the goal that every waiter is served in turn.
func judgeOrder(o outcome) string {
	switch {
	case o.errorCount() > 0:
		return figures.VerdictErrors
	case o.order.isInTurn():
		return figures.VerdictMet
	}
	return figures.VerdictMissed
}
