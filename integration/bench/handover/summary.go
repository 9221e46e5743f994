package handover

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"redlock-proxy/integration/bench/figures"
)

const summaryMasters = 5

// scenario describes a contest with goals.
type scenario struct {
	clients, proxies int
	hold, pause      time.Duration
	goals            []goal
}

type goal struct {
	figure
	bound float64
}

// figure describes a figure of a scenario. value gets three outcomes of one round: of the proxies,
// of redsync, and (singleClient) of a single client of one proxy.
type figure struct {
	title        string
	direction    figures.Direction
	value        func(o, redsync, singleClient outcome) float64
	needsRedsync bool // value needs redsync's outcome
}

// scenarios returns all scenarios. The first scenario has one client; its outcome is the argument
// singleClient of the figures of all scenarios.
func scenarios() []scenario {
	const ms = time.Millisecond
	var (
		rateToOneClient = figure{"grants/s beside those of one client", figures.AtLeast,
			func(o, _, alone outcome) float64 { return o.grantRate / alone.grantRate }, false}
		rate = figure{"hand-overs/s", figures.AtLeast,
			func(o, _, _ outcome) float64 { return o.handoverRate }, false}
		rateToRedsync = figure{"hand-overs/s beside redsync's", figures.AtLeast,
			func(o, redsync, _ outcome) float64 { return o.handoverRate / redsync.handoverRate }, true}
		p99 = figure{"p99 of a hand-over, ms", figures.AtMost,
			func(o, _, _ outcome) float64 { return figures.Millis(o.handoverP99) }, false}
		freeShare = figure{"free although it is waited for, %", figures.AtMost,
			func(o, _, _ outcome) float64 { return 100 * o.freeShare }, false}
		meanWaitRatio = figure{"mean waits of the unluckiest and the luckiest client", figures.AtMost,
			func(o, _, _ outcome) float64 { return o.meanWaitRatio() }, false}
	)
	return []scenario{
		{clients: 1, proxies: 1},
		{clients: 2, proxies: 1, goals: []goal{{rateToOneClient, 0.6}, {p99, 3}}},
		{clients: 8, proxies: 1, goals: []goal{{rate, 3500}}},
		{clients: 64, proxies: 1, goals: []goal{{rate, 3500}}},
		{clients: 2, proxies: 1, hold: 5 * ms, goals: []goal{{freeShare, 10}, {p99, 3}}},
		{clients: 8, proxies: 1, hold: 50 * ms, goals: []goal{{freeShare, 2}, {p99, 3}}},
		{clients: 2, proxies: 2, goals: []goal{{rate, 1000}, {p99, 5}}},
		{clients: 2, proxies: 2, hold: 5 * ms, goals: []goal{{freeShare, 20}, {p99, 5}}},
		{clients: 4, proxies: 2, goals: []goal{{p99, 5}}},
		{clients: 64, proxies: 2, pause: 5 * ms, goals: []goal{{rateToRedsync, 10}, {meanWaitRatio, 1.5}}},
	}
}

// String describes the scenario.
func (s scenario) String() string {
	text := fmt.Sprintf("%d clients of %d proxies, hold %v", s.clients, s.proxies, s.hold)
	if s.pause > 0 {
		text += fmt.Sprintf(", pause %v", s.pause)
	}
	return text
}

// Summary measures the figures with goals of all scenarios. It prints progress to log. If binary is
// empty, it builds the proxy.
func Summary(
	ctx context.Context, binary string, rounds int, window time.Duration, log io.Writer,
) (lines []figures.Line, err error) {
	fleets := map[int]*fleet{}
	defer func() {
		for _, f := range fleets {
			err = errors.Join(err, f.Close())
		}
	}()
	for _, proxies := range []int{1, 2} {
		fleets[proxies], err = startFleet(settings{masters: summaryMasters, proxies: proxies, binary: binary})
		if err != nil {
			delete(fleets, proxies)
			return nil, err
		}
	}
	all := scenarios()
	figuresOf := make([][][]float64, len(all)) // for each scenario, its goals' figures by round
	for round := range rounds {
		var singleClient outcome
		for i, s := range all {
			ours, redsync, err := s.run(ctx, fleets[s.proxies], window, round, log)
			if err != nil {
				return nil, fmt.Errorf("%v: %w", s, err)
			}
			if i == 0 {
				singleClient = ours
			}
			for j, g := range s.goals {
				if round == 0 {
					figuresOf[i] = append(figuresOf[i], nil)
				}
				figuresOf[i][j] = append(figuresOf[i][j], g.value(ours, redsync, singleClient))
			}
		}
	}
	for i, s := range all {
		for j, g := range s.goals {
			lines = append(lines, figures.Line{
				Title: fmt.Sprintf("%v: %s", s, g.title),
				Ratio: figures.SingleFigure(figuresOf[i][j]),
				Goal:  figures.Goal{Direction: g.direction, Bound: g.bound},
			})
		}
	}
	return lines, nil
}

// run runs one round of the scenario with the proxies, and with redsync if a goal needs redsync.
func (s scenario) run(
	ctx context.Context, f *fleet, window time.Duration, round int, log io.Writer,
) (proxyOutcome, redsync outcome, err error) {
	set := settings{clients: s.clients, proxies: s.proxies, hold: s.hold, pause: s.pause, window: window}
	for _, one := range contenders() {
		into := &proxyOutcome
		if one.name == nameRedsync {
			if into = &redsync; !s.needsRedsync() {
				continue
			}
		}
		got, c, err := runWindow(ctx, f, set, one, round)
		if err != nil {
			return proxyOutcome, redsync, fmt.Errorf("%s: %w", one.name, err)
		}
		c.close()
		fmt.Fprintf(log, "round %d, %v, %s: %s\n", round+1, s, one.name, got)
		*into = got
	}
	return proxyOutcome, redsync, nil
}

func (s scenario) needsRedsync() bool {
	for _, g := range s.goals {
		if g.needsRedsync {
			return true
		}
	}
	return false
}
