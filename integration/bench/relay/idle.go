package relay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"redlock-proxy/integration/bench/figures"
	"redlock-proxy/integration/bench/suite"
	"redlock-proxy/internal/redistest"
)

// replyTimeout limits the wait for one reply.
const replyTimeout = 10 * time.Second

// idleContenders returns the contenders that have an upstream connection for each client.
func idleContenders() []string { return []string{nameProxy, nameHAProxy} }

// idleCost holds the cost of idle clients for a process.
type idleCost struct {
	clients             int
	rssBefore, rssAfter int64 // resident bytes
	descriptors         int   // descriptors for the clients
	otherCores          float64
}

func (w idleCost) perClient() float64 { return float64(w.rssAfter-w.rssBefore) / float64(w.clients) }

// measureIdle connects idle clients to one contender after the other, and prints the table.
func measureIdle(ctx context.Context, f *fleet, set settings, out, log io.Writer, tally *figures.Tally) error {
	clients := min(set.idleClients, f.maxClients)
	costs := map[string]idleCost{}
	for _, name := range idleContenders() {
		if !slices.Contains(set.contenders, name) {
			continue
		}
		fmt.Fprintf(log, "%d idle clients at %s\n", clients, name)
		got, err := measureIdleCost(ctx, f, f.contenders[name], clients, set)
		if err != nil {
			return fmt.Errorf("idle clients at %s: %w", name, err)
		}
		costs[name] = got
	}
	writeIdle(out, set, clients, costs, tally)
	return nil
}

// measureIdleCost connects the clients, waits, and returns their cost.
func measureIdleCost(ctx context.Context, f *fleet, s server, clients int, set settings) (w idleCost, err error) {
	w.clients = clients
	before, err := s.Descriptors()
	if err != nil {
		return w, err
	}
	if w.rssBefore, err = s.RSS(); err != nil {
		return w, err
	}
	start, err := f.readCPU(s)
	if err != nil {
		return w, err
	}
	idle, err := connectIdle(ctx, s.Addr(), clients, set.concurrentConnects)
	defer closeClients(idle)
	if err != nil {
		return w, err
	}
	if err := suite.Pause(ctx, set.settleTime); err != nil {
		return w, err
	}
	if w.rssAfter, err = s.RSS(); err != nil {
		return w, err
	}
	after, err := s.Descriptors()
	if err != nil {
		return w, err
	}
	w.descriptors = after - before
	end, err := f.readCPU(s)
	w.otherCores = otherCores(start, end, 0)
	return w, err
}

// connectIdle connects the clients, at most concurrency at a time. Each sends a GET and reads its
// reply. connectIdle returns the clients even after an error.
func connectIdle(ctx context.Context, addr string, clients, concurrency int) ([]*redistest.Client, error) {
	all := make([]*redistest.Client, clients)
	errs := make([]error, clients)
	runConcurrently(ctx, clients, concurrency, func(i int) { all[i], errs[i] = connectIdleClient(addr) })
	if ctx.Err() != nil {
		return all, context.Cause(ctx)
	}
	for i, err := range errs {
		if err != nil {
			return all, fmt.Errorf("client %d of %d: %w", i+1, clients, err)
		}
	}
	return all, nil
}

func connectIdleClient(addr string) (*redistest.Client, error) {
	client, err := redistest.Dial(addr, replyTimeout)
	if err != nil {
		return nil, err
	}
	reply, err := client.Do("GET", "bench:absent")
	if reply != nil {
		err = errors.Join(err, fmt.Errorf("GET answered %v", reply))
	}
	return client, err
}

func closeClients(clients []*redistest.Client) {
	for _, client := range clients {
		if client != nil {
			_ = client.Close()
		}
	}
}

// runConcurrently calls do for 0 … n-1, at most concurrency at a time. It begins no more calls
// after ctx ends.
func runConcurrently(ctx context.Context, n, concurrency int, do func(i int)) {
	next := make(chan int)
	var workers sync.WaitGroup
	for range min(concurrency, n) {
		workers.Go(func() {
			for i := range next {
				do(i)
			}
		})
	}
	for i := 0; i < n && ctx.Err() == nil; i++ {
		next <- i
	}
	close(next)
	workers.Wait()
}

// idleGoal returns the goal for the memory of this proxy per client, relative to HAProxy's.
func idleGoal() figures.Goal { return figures.Goal{Direction: figures.AtMost, Bound: 2} }

func writeIdle(w io.Writer, set settings, clients int, costs map[string]idleCost, tally *figures.Tally) {
	fmt.Fprintf(w, "\n### %d idle clients, one GET each, %v later\n\n", clients, set.settleTime)
	if clients < set.idleClients {
		fmt.Fprintf(w, "Fewer than the %d asked for: a process may open too few descriptors here (ulimit -Hn).\n\n",
			set.idleClients)
	}
	fmt.Fprintln(w, "| | RSS before | RSS with them | per client | descriptors per client |")
	fmt.Fprintln(w, "|---|--:|--:|--:|--:|")
	var perClientCosts [2][]float64
	for i, name := range idleContenders() {
		if got, ok := costs[name]; ok {
			perClientCosts[i] = []float64{got.perClient()}
			fmt.Fprintf(w, "| %s | %s | %s | %s | %.2f |\n", name, megabytes(got.rssBefore), megabytes(got.rssAfter),
				kilobytes(got.perClient()), float64(got.descriptors)/float64(got.clients))
		}
	}
	for name, got := range costs {
		figures.WriteNoiseWarning(w, name, got.otherCores)
	}
	figures.WriteLines(w, []figures.Line{
		{Title: "RSS per client, proxy / haproxy", Ratio: figures.RatioOf(perClientCosts[0], perClientCosts[1]), Goal: idleGoal()},
	}, tally)
}
