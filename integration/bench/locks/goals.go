package locks

import "redlock-proxy/integration/bench/figures"

// ratioKind is a comparison of two contenders, mostly of the proxy with another contender.
type ratioKind struct {
	title string
	ours  string
	other string
	value func(outcome) float64
}

func rate(o outcome) float64   { return o.rate }
func lock50(o outcome) float64 { return float64(o.lock50) }
func pair50(o outcome) float64 { return float64(o.pair50) }
func cpu(o outcome) float64    { return o.cpu.total }

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
)

// ratioKinds returns all ratios in the order of the tables.
func ratioKinds() []ratioKind {
	return []ratioKind{
		{ratioRateRedsync, nameProxy, nameRedsync, rate},
		{ratioRateDirect, nameProxy, nameDirect, rate},
		{ratioLock50Redsync, nameProxy, nameRedsync, lock50},
		{ratioPair50Redsync, nameProxy, nameRedsync, pair50},
		{ratioCPURedsync, nameProxy, nameRedsync, cpu},
		{ratioCPUDirect, nameProxy, nameDirect, cpu},
		{ratioRateLockKeys, nameLockKeys, nameProxy, rate},
		{ratioCPULockKeys, nameLockKeys, nameProxy, cpu},
		{ratioRateReentrant, nameReentrant, nameProxy, rate},
		{ratioRateTelling, nameTelling, nameProxy, rate},
	}
}

// hasRun reports whether both contenders were run.
func (k ratioKind) hasRun(r results) bool { return len(r[k.ours]) > 0 && len(r[k.other]) > 0 }

// ratioOf returns the ratio of the figures of the two contenders.
func ratioOf(r results, kind ratioKind) figures.Ratio {
	ours, theirs := r[kind.ours], r[kind.other]
	ratio := figures.RatioOf(values(ours, kind.value), values(theirs, kind.value))
	ratio.Faulty = len(ours) == len(theirs) && errorCount(ours)+errorCount(theirs) > 0
	return ratio
}

func values(rounds []outcome, value func(outcome) float64) []float64 {
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
	return goal{ratio, figures.Goal{Side: figures.AtLeast, Bound: bound}}
}

func atMost(ratio string, bound float64) goal {
	return goal{ratio, figures.Goal{Side: figures.AtMost, Bound: bound}}
}

// judgeTurns returns the verdict on the goal that every waiter is served in turn.
func judgeTurns(o outcome) string {
	switch {
	case o.errorCount() > 0:
		return figures.Broken
	case o.turns.inTurn():
		return figures.Met
	}
	return figures.Missed
}
