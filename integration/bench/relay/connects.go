package relay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"redlock-proxy/integration/bench/figures"
	"redlock-proxy/integration/bench/suite"
	"redlock-proxy/internal/redistest"
)

const (
	// connectSteps is the number of steps. The benchmark checks the process after each step.
	connectSteps = 10
	// maxGrowth limits the growth of resident memory after the first step, in bytes. The heap of a
	// garbage-collected program varies by some megabytes.
	maxGrowth = 8 << 20
	// maxMoreDescriptors limits the number of additional open descriptors at the end. A probe of
	// the upstream may be running.
	maxMoreDescriptors = 2
	// closeTimeout limits the wait for the proxy to close the connections of its clients.
	closeTimeout = 5 * time.Second
)

// errNoProxy means that the proxy is not among the contenders.
var errNoProxy = errors.New("-connects measures the proxy, which is not among the contenders")

// snapshot holds the figures of the proxy between two steps, while no client is connected.
type snapshot struct {
	connects            int // connects so far
	rss                 int64
	descriptors         int
	upstreamDescriptors int           // descriptors of the redis-server
	duration            time.Duration // duration of the step
}

// connectTest holds all snapshots, and counts the errors. The first snapshot precedes the first
// connect.
type connectTest struct {
	snapshots  []snapshot
	otherCores float64

	mu     sync.Mutex
	errors map[string]int
}

// measureConnects lets clients connect and disconnect, and prints the table.
func measureConnects(ctx context.Context, f *fleet, set settings, out, log io.Writer, tally *figures.Tally) error {
	proxy := f.contenders[nameProxy]
	if proxy == nil {
		return errNoProxy
	}
	before, err := f.readCPU(proxy)
	if err != nil {
		return err
	}
	s := &connectTest{errors: map[string]int{}}
	if err := s.run(ctx, f, proxy, set, log); err != nil {
		return err
	}
	after, err := f.readCPU(proxy)
	if err != nil {
		return err
	}
	s.otherCores = otherCores(before, after, 0)
	s.write(out, set, tally)
	return nil
}

func (s *connectTest) run(ctx context.Context, f *fleet, proxy server, set settings, log io.Writer) error {
	if err := s.addSnapshot(ctx, f, proxy, 0, 0); err != nil {
		return err
	}
	for step := range connectSteps {
		from, to := set.connects*step/connectSteps, set.connects*(step+1)/connectSteps
		begin := time.Now()
		runConcurrently(ctx, to-from, set.concurrentConnects, func(int) { s.countError(connectOnce(proxy.Addr())) })
		if err := s.addSnapshot(ctx, f, proxy, to, time.Since(begin)); err != nil {
			return err
		}
		last := s.snapshots[len(s.snapshots)-1]
		fmt.Fprintf(log, "%d connects, RSS %s, %d descriptors, %v\n",
			last.connects, megabytes(last.rss), last.descriptors, last.duration)
	}
	return nil
}

// connectOnce connects one client, sends PING, and disconnects.
func connectOnce(addr string) error {
	client, err := redistest.Dial(addr, replyTimeout)
	if err != nil {
		return err
	}
	defer client.Close()
	reply, err := client.Do("PING")
	if err == nil && reply != "PONG" {
		err = fmt.Errorf("PING answered %v", reply)
	}
	return err
}

func (s *connectTest) countError(err error) {
	if err == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.errors[err.Error()]++
}

// addSnapshot waits until the proxy has closed the connections of its clients, for at most
// closeTimeout, and then adds a snapshot.
func (s *connectTest) addSnapshot(ctx context.Context, f *fleet, proxy server, done int, took time.Duration) (err error) {
	l := snapshot{connects: done, duration: took}
	for deadline := time.Now().Add(closeTimeout); ; {
		if l.descriptors, err = proxy.Descriptors(); err != nil {
			return err
		}
		if done == 0 || l.descriptors <= s.snapshots[0].descriptors || time.Now().After(deadline) {
			break
		}
		if err := suite.Pause(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
	if l.upstreamDescriptors, err = f.upstream.Descriptors(); err != nil {
		return err
	}
	l.rss, err = proxy.RSS()
	s.snapshots = append(s.snapshots, l)
	return errors.Join(err, context.Cause(ctx))
}

func (s *connectTest) firstSnapshot() snapshot  { return s.snapshots[0] }
func (s *connectTest) secondSnapshot() snapshot { return s.snapshots[1] }
func (s *connectTest) lastSnapshot() snapshot   { return s.snapshots[len(s.snapshots)-1] }

// growth returns the growth of the resident memory after the first step, in total and per connect.
func (s *connectTest) growth() (bytes int64, perConnect float64) {
	bytes = s.lastSnapshot().rss - s.secondSnapshot().rss
	return bytes, float64(bytes) / float64(s.lastSnapshot().connects-s.secondSnapshot().connects)
}

// verdict returns the verdict on a goal that is met if flat is set.
func (s *connectTest) verdict(flat bool) string {
	switch {
	case len(s.errors) > 0:
		return figures.VerdictErrors
	case flat:
		return figures.VerdictMet
	}
	return figures.VerdictMissed
}

func (s *connectTest) write(w io.Writer, set settings, tally *figures.Tally) {
	fmt.Fprintf(w, "\n### %d clients that connect, PING and leave, %d at a time\n\n", set.connects, set.concurrentConnects)
	fmt.Fprintln(w, "| connects | per second | RSS of the proxy | its descriptors | redis-server's descriptors |")
	fmt.Fprintln(w, "|--:|--:|--:|--:|--:|")
	for i, l := range s.snapshots {
		rate := "–"
		if i > 0 {
			rate = fmt.Sprintf("%.0f", float64(l.connects-s.snapshots[i-1].connects)/l.duration.Seconds())
		}
		fmt.Fprintf(w, "| %d | %s | %s | %d | %d |\n", l.connects, rate, megabytes(l.rss), l.descriptors, l.upstreamDescriptors)
	}
	if len(s.errors) > 0 {
		fmt.Fprintf(w, "\nERRORS: %s\n", errorTexts(s.errors))
	}
	figures.WriteNoiseWarning(w, nameProxy, s.otherCores)
	s.writeGoals(w, tally)
}

func (s *connectTest) writeGoals(w io.Writer, tally *figures.Tally) {
	bytes, each := s.growth()
	more := s.lastSnapshot().descriptors - s.firstSnapshot().descriptors
	memory := tally.Add(s.verdict(bytes <= maxGrowth))
	files := tally.Add(s.verdict(more <= maxMoreDescriptors))
	fmt.Fprintln(w, "\n| flat? | measured | goal | |")
	fmt.Fprintln(w, "|---|--:|--:|---|")
	fmt.Fprintf(w, "| RSS after the first tenth | %+.1f MB, %+.1f bytes per connect | ≤ %s | %s |\n",
		float64(bytes)/(1<<20), each, megabytes(maxGrowth), memory)
	fmt.Fprintf(w, "| descriptors | %+d | ≤ %d | %s |\n", more, maxMoreDescriptors, files)
}
