package wake

import (
	"slices"
	"time"
)

// state is what is known of a key on one master.
type state byte

const (
	// unknown: the master is not watched.
	unknown state = iota
	// asked: a look is under way.
	asked
	// held: a lock stands there, and the next change will be told.
	held
	// free: there was none when it was looked at.
	free
	// changed: it has changed since.
	changed
)

// sighting is that state, and when the lock ends if it is held; zero: never.
type sighting struct {
	state state
	end   time.Time
	// stale is set with changed where that is the answer to a look.
	stale bool
}

// Verdict is what the sightings of all masters come to.
type Verdict byte

const (
	// Unclear: too little is known to say whether a try is worthwhile.
	Unclear Verdict = iota
	// Held: so many masters hold a lock that the key cannot be had.
	Held
	// Changed: so many told of a change since they were looked at, or were free, that it may be
	// had.
	Changed
	// Free: so many were free that it can be had.
	Free
)

// View is what is known of a key on all masters.
type View struct {
	Verdict Verdict
	// End is, with Held, when so many locks are over by themselves that the key may be had; zero:
	// that is not known.
	End time.Time
	// Stirred is set where some masters told of a change, but too few for Changed.
	Stirred bool
	// Asking is set where looks are under way.
	Asking bool
	// Partly is set, for one who waits for a change, where some masters are not watched.
	Partly bool
}

// judge weighs the sightings, of which so many are a majority.
func judge(all []sighting, quorum int, now time.Time) View {
	var count [changed + 1]int
	var ends []time.Time
	for _, s := range all {
		switch {
		case s.state == held && !s.end.IsZero() && !s.end.After(now):
			count[changed]++
			continue
		case s.state == held && !s.end.IsZero():
			ends = append(ends, s.end)
		}
		count[s.state]++
	}
	v := View{Asking: count[asked] > 0}
	switch {
	case count[free] >= quorum:
		v.Verdict = Free
	case count[free]+count[changed] >= quorum:
		v.Verdict = Changed
	case count[held] > max(0, len(all)-quorum):
		v.Verdict, v.Stirred = Held, count[changed] > 0
		v.End = endOf(ends, quorum-count[free])
	default:
		v.Stirred = count[changed] > 0
	}
	return v
}

// judgeChange weighs them for one who waits for whatever change: Held says that there was none
// since so many were looked at, Changed that a master told of one, which is Stirred where fewer
// than a majority did.
func judgeChange(all []sighting, quorum int, _ time.Time) View {
	var count [changed + 1]int
	for _, s := range all {
		count[s.state]++
	}
	v := View{Asking: count[asked] > 0, Partly: count[unknown] > 0}
	switch {
	case count[changed] > 0:
		v.Verdict, v.Stirred = Changed, count[changed] < quorum
	case count[held]+count[free] >= quorum:
		v.Verdict = Held
	}
	return v
}

// endOf is when so many are over; where there are fewer, nobody knows.
func endOf(ends []time.Time, n int) time.Time {
	if len(ends) < n {
		return time.Time{}
	}
	slices.SortFunc(ends, time.Time.Compare)
	return ends[n-1]
}
