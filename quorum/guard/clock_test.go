package guard

import (
	"math/rand/v2"
	"testing"
	"time"

	"redlock-proxy/quorum/vote"
)

// clockTrial reads a master's clock repeatedly, each time after a pause and with a round trip. The
// clock steps between two readings.
type clockTrial struct {
	start time.Time
	now   time.Duration // since the start
	skew  time.Duration
	clock masterClock
}

func newClockTrial() *clockTrial { return &clockTrial{start: time.Now(), skew: 1e18} }

// readClock reads the clock after a pause. The clock steps by step before the request. The request
// takes the time outbound, and the reply the time inbound.
func (t *clockTrial) readClock(pause, outbound, inbound, step time.Duration) (stepSize time.Duration, fits bool) {
	t.skew += step
	sent := t.now + pause
	t.now = sent + outbound + inbound
	s := ClockReading{SentAt: t.start.Add(sent), ReceivedAt: t.start.Add(t.now), ServerTime: sent + outbound + t.skew}
	return t.clock.Observe(s)
}

func TestClock(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		name                    string
		outbound, inbound, step time.Duration
		fits                    bool
		stepSize                time.Duration
	}{
		{"stands", ms, ms, 0, true, 0},
		{"noise", ms, ms, 3 * ms, true, 0},
		// The bound excludes the round trip and the slack of a second.
		{"forward", ms, ms, 20 * ms, false, 12 * ms},
		{"backward", ms, ms, -20 * ms, false, -12 * ms},
		{"an hour", ms, ms, time.Hour, false, time.Hour - 8*ms},
		{"a long way there", 90 * ms, 0, 0, true, 0},
		{"a long way back", 0, 90 * ms, 0, true, 0},
		{"a step that a long way may hide", 45 * ms, 45 * ms, 30 * ms, true, 0},
		{"a step that a long way cannot hide", 45 * ms, 45 * ms, 60 * ms, false, 7 * ms},
	} {
		t.Run(c.name, func(t *testing.T) {
			trial := newClockTrial()
			trial.readClock(0, ms, ms, 0)
			stepSize, fits := trial.readClock(time.Second, c.outbound, c.inbound, c.step)
			if fits != c.fits || (stepSize-c.stepSize).Abs() > 2*ms {
				t.Errorf("got %v, %v, want %v, %v", stepSize, fits, c.stepSize, c.fits)
			}
		})
	}
}

// TestHiddenStepShowsLater checks that a step that a slow batch hides shows in the next quick
// batch.
func TestHiddenStepShowsLater(t *testing.T) {
	trial := newClockTrial()
	trial.readClock(0, 0, time.Millisecond, 0)
	if _, fits := trial.readClock(time.Millisecond, 45*time.Millisecond, 45*time.Millisecond, 30*time.Millisecond); !fits {
		t.Error("a step within the way there and back was seen")
	}
	if _, fits := trial.readClock(time.Millisecond, 0, time.Millisecond, 0); fits {
		t.Error("the step was never seen")
	}
}

// TestManySmallStepsAddUp checks that the clock notices a rapid series of steps, each within the
// noise.
func TestManySmallStepsAddUp(t *testing.T) {
	trial := newClockTrial()
	for n := range 100 {
		if _, fits := trial.readClock(10*time.Millisecond, 0, time.Millisecond, time.Millisecond); !fits {
			if n < 2 {
				t.Errorf("the noise of %d ms was taken for a step", n)
			}
			return
		}
	}
	t.Error("100 ms in a second were not seen")
}

// TestClockWithinTolerancesFits checks that a clock within the allowed rate fits, regardless of
// network delays.
func TestClockWithinTolerancesFits(t *testing.T) {
	for seed := range uint64(50) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		trial, rate := newClockTrial(), (rnd.Float64()*2-1)*clockRate*0.99
		for range 500 {
			pause := time.Duration(rnd.Int64N(int64(time.Second)))
			outbound, inbound := time.Duration(rnd.Int64N(int64(20*time.Millisecond))),
				time.Duration(rnd.Int64N(int64(20*time.Millisecond)))
			drift := time.Duration(rate * float64(pause+outbound+inbound))
			if stepSize, fits := trial.readClock(pause, outbound, inbound, drift); !fits {
				t.Fatalf("seed %d: moved by %v", seed, stepSize)
			}
		}
	}
}

// TestDriftMarginCoversUnseenDrift checks for leases of all lengths that drift, the noise of a
// reading, and Redis's precision of a millisecond stay within vote.DriftMargin.
func TestDriftMarginCoversUnseenDrift(t *testing.T) {
	for lease := time.Millisecond; lease < 1000*time.Hour; lease += lease/7 + 1 {
		if unnoticed := maxDrift(lease) + clockNoise + time.Millisecond; unnoticed > vote.DriftMargin(lease) {
			t.Fatalf("%v: %v is not seen, %v is allowed", lease, unnoticed, vote.DriftMargin(lease))
		}
	}
}

// TestUnseenStepsNeverExceedTheAllowance lets a clock make random steps. Between two readings that
// fit, the clock has gained at most the drift, twice the noise, and the round trip of the best
// earlier reading.
func TestUnseenStepsNeverExceedTheAllowance(t *testing.T) {
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		trial := newClockTrial()
		type reading struct{ at, skew time.Duration }
		var history []reading
		const latency = 200 * time.Microsecond
		for range 300 {
			pause, step := time.Duration(rnd.Int64N(int64(300*time.Millisecond))),
				time.Duration(rnd.Int64N(int64(4*time.Millisecond)))
			if rnd.IntN(3) > 0 {
				step = maxDrift(pause)
			}
			if _, fits := trial.readClock(pause, latency, latency, step); !fits {
				break
			}
			history = append(history, reading{trial.now, trial.skew})
		}
		for i, from := range history {
			for _, to := range history[i:] {
				if gained := to.skew - from.skew; gained > maxDrift(to.at-from.at)+2*clockNoise+2*latency {
					t.Fatalf("seed %d: gained %v in %v", seed, gained, to.at-from.at)
				}
			}
		}
	}
}
