package master

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"redlock-proxy/internal/luascript"
	"redlock-proxy/internal/redistest"
	"redlock-proxy/quorum/cell"
	"redlock-proxy/quorum/guard"
	"redlock-proxy/quorum/register"
)

// echo is a transport to a simulated master, which answers each read with the key. If permits is
// set, the master waits for a permit before it answers each batch.
type echo struct {
	Transport
	permits chan struct{} // nil: answers at once
}

func (e *echo) Probe(context.Context) (time.Duration, error) { return 0, nil }
func (e *echo) IsUnsupported(error) bool                     { return false }
func (e *echo) Close()                                       {}

func (e *echo) Examine(context.Context) (guard.Report, error) { return guard.Report{}, nil }

// Run answers an announcement: no time, and no other proxies.
func (e *echo) Run(context.Context, luascript.Script, ...any) (any, error) {
	return []any{"0", "0"}, nil
}

func (e *echo) Dial(context.Context, int) (Link, error) {
	return &echoLink{echo: e, sentBatches: make(chan *Batch, 1), closed: make(chan struct{})}, nil
}

type echoLink struct {
	*echo
	sentBatches chan *Batch
	closed      chan struct{}
	once        sync.Once
}

func (k *echoLink) Send(f *Batch) bool { k.sentBatches <- f; return true }
func (k *echoLink) Close()             { k.once.Do(func() { close(k.closed) }) }

func (k *echoLink) Receive() (*Batch, error) {
	select {
	case <-k.closed:
		return nil, errors.New("closed")
	case f := <-k.sentBatches:
		if k.permits != nil {
			<-k.permits
		}
		for i, o := range f.ops {
			f.Answer(i, register.Reply{State: register.Counted, Answer: replyOf(o.cellOp.(cell.Read).Names[0])})
		}
		return f, nil
	}
}

func replyOf(key string) cell.Answer {
	return cell.Answer{Applied: true, KeyStates: []cell.KeyState{{Cell: cell.Cell{Form: cell.Foreign,
		Value: cell.Value{Present: true, Text: key}}}}}
}

// runMasterWithTransport runs a master over a transport, without the guard, until the test ends.
func runMasterWithTransport(t *testing.T, transport Transport) *Master {
	log := slog.New(slog.DiscardHandler)
	m := New("m", transport, nil, log, func() float64 { return 0.5 })
	options := guard.Options{
		Off: true, Logger: log, MoveEra: func() int { return 0 }, InUse: func() bool { return false },
	}
	m.SetGuard(guard.NewSet(options, []guard.Master{m.GuardMaster()}).Guard(0))
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); m.Run(ctx) }()
	t.Cleanup(func() { stop(); <-done })
	redistest.Await(t, "the master is up", func() bool { return !m.IsDown() })
	return m
}

// TestReuseOfRounds checks that reused rounds get each of their replies once, and no reply of
// another round. One master replies after many rounds have begun, and callers cancel rounds and
// drop ops.
func TestReuseOfRounds(t *testing.T) {
	const callers, roundsEach = 8, 300
	slow := &echo{permits: make(chan struct{})}
	masters := []*Master{runMasterWithTransport(t, &echo{}), runMasterWithTransport(t, slow), runMasterWithTransport(t, &echo{})}
	var rounds Rounds
	var pendingReplies, clients sync.WaitGroup
	var mu sync.Mutex
	used := map[*Round]int{}
	for caller := range callers {
		clients.Go(func() {
			for i := range roundsEach {
				key := fmt.Sprint(caller, "/", i)
				answerCounts := make([]int, len(masters))
				pendingReplies.Add(len(masters))
				receive := func(m int, got register.Reply) {
					defer pendingReplies.Done()
					if answerCounts[m]++; answerCounts[m] > 1 {
						t.Errorf("%s: master %d answered twice", key, m)
					}
					if got.State == register.Counted && got.KeyStates[0].Value.Text != key {
						t.Errorf("%s: master %d answered %s", key, m, got.KeyStates[0].Value.Text)
					}
				}
				ctx, cancel := context.WithCancel(t.Context())
				if i%7 == 0 {
					cancel()
				}
				r := rounds.Send(masters, 0, differentReads(i, key, len(masters)), func(replies []register.Reply) bool {
					return replies[0].State != register.Waiting && replies[2].State != register.Waiting
				}, nil)
				mu.Lock()
				used[r]++
				mu.Unlock()
				if r.Wait(ctx) != nil {
					r.Drop()
				}
				for m, got := range r.Replies() {
					if got.State != register.Waiting {
						receive(m, got)
					}
				}
				r.OnLaterReply(receive)
				r.Release()
				cancel()
			}
		})
	}
	done := make(chan struct{})
	go func() { clients.Wait(); pendingReplies.Wait(); close(done) }()
	for more := true; more; {
		select {
		case slow.permits <- struct{}{}:
		case <-done:
			more = false
		}
	}
	if len(used) == callers*roundsEach {
		t.Error("no round was reused")
	}
}

// differentReads returns a read of a key for each master. In some rounds the read for one master
// differs.
func differentReads(i int, key string, n int) []cell.Op {
	ops := make([]cell.Op, n)
	for m := range ops {
		ops[m] = cell.Read{Names: []string{key}, WithFences: i%3 == 0 && m == 1}
	}
	return ops
}

// TestOrderOfRounds checks that all masters get the rounds of concurrent callers in the same order.
func TestOrderOfRounds(t *testing.T) {
	const callers, roundsEach = 16, 500
	recorders := []*recorder{{}, {}, {}, {}, {}}
	var masters []*Master
	for _, r := range recorders {
		masters = append(masters, runMasterWithTransport(t, r))
	}
	var rounds Rounds
	var clients sync.WaitGroup
	for caller := range callers {
		clients.Go(func() {
			for i := range roundsEach {
				ops := slices.Repeat([]cell.Op{cell.Read{Names: []string{fmt.Sprint(caller, "/", i)}}}, len(masters))
				r := rounds.Send(masters, 0, ops, func([]register.Reply) bool { return false }, nil)
				if err := r.Wait(t.Context()); err != nil {
					t.Error(err)
				}
				r.Release()
			}
		})
	}
	clients.Wait()
	keysOf := func(r *recorder) []string {
		return strings.Fields(strings.NewReplacer("[", " ", "]", " ").Replace(strings.Join(r.batches, "")))
	}
	for i, r := range recorders {
		if keys := keysOf(r); len(keys) != callers*roundsEach || !slices.Equal(keys, keysOf(recorders[0])) {
			t.Errorf("master %d got %d rounds, in another order than master 0", i, len(keys))
		}
	}
}
