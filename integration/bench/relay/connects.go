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
	// connectSteps is the number of steps. The process is checked after each step.
	connectSteps = 10
	// flatGrowth limits the growth of resident memory from the first step to the last, in bytes.
	// The heap of a garbage-collected program varies by some megabytes.
	flatGrowth = 8 << 20
	// flatDescriptors limits the number of additional open descriptors at the end. A probe of the
	// upstream may be running.
	flatDescriptors = 2
	// closeLimit limits the time in which a process must close the connections of its clients.
	closeLimit = 5 * time.Second
)

// errNoProxy means that the proxy is not among the contenders.
var errNoProxy = errors.New("-connects measures the proxy, which is not among the contenders")

// look holds the figures of the proxy between two steps, while no client is connected.
type look struct {
	done        int // connects so far
	rss         int64
	descriptors int
	upstream    int           // descriptors of the redis-server
	took        time.Duration // duration of the step
}

// soak holds all looks, of which the first is before the first connect, and the errors.
type soak struct {
	looks  []look
	others float64

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
	s := &soak{errors: map[string]int{}}
	if err := s.run(ctx, f, proxy, set, log); err != nil {
		return err
	}
	after, err := f.readCPU(proxy)
	if err != nil {
		return err
	}
	s.others = cores(before, after, 0)
	s.write(out, set, tally)
	return nil
}

func (s *soak) run(ctx context.Context, f *fleet, proxy server, set settings, log io.Writer) error {
	if err := s.look(ctx, f, proxy, 0, 0); err != nil {
		return err
	}
	for step := range connectSteps {
		from, to := set.connects*step/connectSteps, set.connects*(step+1)/connectSteps
		begin := time.Now()
		eachAtOnce(ctx, to-from, set.atOnce, func(int) { s.count(connectOnce(proxy.Addr())) })
		if err := s.look(ctx, f, proxy, to, time.Since(begin)); err != nil {
			return err
		}
		last := s.looks[len(s.looks)-1]
		fmt.Fprintf(log, "%d connects, RSS %s, %d descriptors, %v\n",
			last.done, megabytes(last.rss), last.descriptors, last.took)
	}
	return nil
}

// connectOnce connects one client, sends PING, and disconnects.
func connectOnce(addr string) error {
	client, err := redistest.Dial(addr, answerLimit)
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

func (s *soak) count(err error) {
	if err == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.errors[err.Error()]++
}

// look waits until the proxy has closed the connections of its clients, at most for closeLimit, and
// adds its figures.
func (s *soak) look(ctx context.Context, f *fleet, proxy server, done int, took time.Duration) (err error) {
	l := look{done: done, took: took}
	for deadline := time.Now().Add(closeLimit); ; {
		if l.descriptors, err = proxy.Descriptors(); err != nil {
			return err
		}
		if done == 0 || l.descriptors <= s.looks[0].descriptors || time.Now().After(deadline) {
			break
		}
		if err := suite.Pause(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
	if l.upstream, err = f.upstream.Descriptors(); err != nil {
		return err
	}
	l.rss, err = proxy.RSS()
	s.looks = append(s.looks, l)
	return errors.Join(err, context.Cause(ctx))
}

func (s *soak) first() look { return s.looks[0] }
func (s *soak) warm() look  { return s.looks[1] }
func (s *soak) last() look  { return s.looks[len(s.looks)-1] }

// growth returns the growth of the resident memory after the first step, in total and per connect.
func (s *soak) growth() (bytes int64, perConnect float64) {
	bytes = s.last().rss - s.warm().rss
	return bytes, float64(bytes) / float64(s.last().done-s.warm().done)
}

// verdict returns the verdict on a goal that is met if flat is set.
func (s *soak) verdict(flat bool) string {
	switch {
	case len(s.errors) > 0:
		return figures.Broken
	case flat:
		return figures.Met
	}
	return figures.Missed
}

func (s *soak) write(w io.Writer, set settings, tally *figures.Tally) {
	fmt.Fprintf(w, "\n### %d clients that connect, PING and leave, %d at a time\n\n", set.connects, set.atOnce)
	fmt.Fprintln(w, "| connects | per second | RSS of the proxy | its descriptors | redis-server's descriptors |")
	fmt.Fprintln(w, "|--:|--:|--:|--:|--:|")
	for i, l := range s.looks {
		rate := "–"
		if i > 0 {
			rate = fmt.Sprintf("%.0f", float64(l.done-s.looks[i-1].done)/l.took.Seconds())
		}
		fmt.Fprintf(w, "| %d | %s | %s | %d | %d |\n", l.done, rate, megabytes(l.rss), l.descriptors, l.upstream)
	}
	if len(s.errors) > 0 {
		fmt.Fprintf(w, "\nERRORS: %s\n", errorTexts(s.errors))
	}
	figures.WriteNoise(w, nameProxy, s.others)
	s.writeGoals(w, tally)
}

func (s *soak) writeGoals(w io.Writer, tally *figures.Tally) {
	bytes, each := s.growth()
	more := s.last().descriptors - s.first().descriptors
	memory := tally.Add(s.verdict(bytes <= flatGrowth))
	files := tally.Add(s.verdict(more <= flatDescriptors))
	fmt.Fprintln(w, "\n| flat? | measured | goal | |")
	fmt.Fprintln(w, "|---|--:|--:|---|")
	fmt.Fprintf(w, "| RSS after the first tenth | %+.1f MB, %+.1f bytes per connect | ≤ %s | %s |\n",
		float64(bytes)/(1<<20), each, megabytes(flatGrowth), memory)
	fmt.Fprintf(w, "| descriptors | %+d | ≤ %d | %s |\n", more, flatDescriptors, files)
}
