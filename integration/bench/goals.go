package main

// ratioKind is one comparison of the proxy with another contender.
type ratioKind struct {
	title string
	other string
	value func(outcome) float64
}

func rate(o outcome) float64   { return o.rate }
func lock50(o outcome) float64 { return float64(o.lock50) }
func pair50(o outcome) float64 { return float64(o.pair50) }
func cpu(o outcome) float64    { return o.cpu.total }

// The names by which goals refer to ratios.
const (
	ratioRateRedsync   = "pairs/s, proxy / redsync"
	ratioRateDirect    = "pairs/s, proxy / direct"
	ratioLock50Redsync = "LOCK p50, proxy / redsync"
	ratioPair50Redsync = "pair p50, proxy / redsync"
	ratioCPURedsync    = "CPU per pair, proxy / redsync"
	ratioCPUDirect     = "CPU per pair, proxy / direct"
)

// ratioKinds returns all ratios in the order of the tables.
func ratioKinds() []ratioKind {
	return []ratioKind{
		{ratioRateRedsync, nameRedsync, rate},
		{ratioRateDirect, nameDirect, rate},
		{ratioLock50Redsync, nameRedsync, lock50},
		{ratioPair50Redsync, nameRedsync, pair50},
		{ratioCPURedsync, nameRedsync, cpu},
		{ratioCPUDirect, nameDirect, cpu},
	}
}

// ratio is the proxy's figure divided by another's.
type ratio struct {
	middle, low, high float64 // of the medians; of the worst and best single round
	known             bool    // both were run and the divisor is not zero
	faulty            bool    // one of them had errors
}

// ratioOf compares medians, and for the range the rounds one by one: both ran side by side in each.
func ratioOf(r results, kind ratioKind) ratio {
	ours, theirs := r[nameProxy], r[kind.other]
	if len(ours) == 0 || len(ours) != len(theirs) {
		return ratio{}
	}
	a, b := medians(ours), medians(theirs)
	out := ratio{faulty: a.errorCount()+b.errorCount() > 0}
	for i := range ours {
		divisor := kind.value(theirs[i])
		if divisor == 0 {
			return out
		}
		each := kind.value(ours[i]) / divisor
		if i == 0 {
			out.low, out.high = each, each
		}
		out.low, out.high = min(out.low, each), max(out.high, each)
	}
	out.middle, out.known = kind.value(a)/kind.value(b), true
	return out
}

// direction says on which side of its bound a goal is met.
type direction string

const (
	atLeast direction = "≥"
	atMost  direction = "≤"
)

// goal is a bound for a ratio.
type goal struct {
	ratio string
	side  direction
	bound float64
}

// The verdicts.
const (
	met        = "met"
	missed     = "MISSED"
	broken     = "MISSED (errors)"
	unmeasured = "not measured"
)

// judge compares a ratio with its goal. Figures of runs with errors prove nothing, so they meet no goal.
func (g goal) judge(r ratio) string {
	switch {
	case r.faulty:
		return broken
	case !r.known:
		return unmeasured
	case g.side == atLeast && r.middle >= g.bound, g.side == atMost && r.middle <= g.bound:
		return met
	}
	return missed
}

// judgeTurns is the verdict on the goal that every waiter is served in turn.
func judgeTurns(o outcome) string {
	switch {
	case o.errorCount() > 0:
		return broken
	case o.turns.inTurn():
		return met
	}
	return missed
}

// tally counts verdicts.
type tally struct{ met, missed, unmeasured int }

// add counts one verdict and returns it.
func (t *tally) add(verdict string) string {
	switch verdict {
	case met:
		t.met++
	case unmeasured:
		t.unmeasured++
	default:
		t.missed++
	}
	return verdict
}
