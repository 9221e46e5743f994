//go:build integration

package waiting

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"redlock-proxy/integration/harness"
	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// pops lets a client of a proxy wait in a BLPOP or a similar command.
func pops(t *testing.T, proxy *harness.Proxy, words ...string) *redistest.Client {
	t.Helper()
	client := kit.Connect(t, proxy)
	kit.Must(t, client.Send(redistest.AppendCommand(nil, words...)))
	kit.WantBlocked(t, proxy, 1)
	return client
}

func wantPopped(t *testing.T, client *redistest.Client, want ...any) {
	t.Helper()
	reply, err := client.Receive()
	kit.Must(t, err)
	if !reflect.DeepEqual(reply, want) {
		t.Fatalf("got %#v, want %#v", reply, want)
	}
}

// TestArrivalsIdle: 200 clients of two proxies wait for elements in four keys: absent ones, a
// string, and a list for which other clients wait. The masters get only the keep-alives of the
// watches.
func TestArrivalsIdle(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	f := start(t, 2, "--lock-keys", "k*")
	f.WantVoting(t, 5)
	usual := idleCommands(t, f)
	for i := range 200 {
		client := kit.Connect(t, f.Proxies[i%2])
		kit.Must(t, client.Send(redistest.AppendCommand(nil, "BLPOP", "k"+strconv.Itoa(i/2%4),
			"k"+strconv.Itoa((i/2+1)%4), "0")))
	}
	for _, proxy := range f.Proxies {
		kit.WantBlocked(t, proxy, 100)
	}
	other := kit.Connect(t, f.Proxies[0])
	kit.Want(t, other, "OK", "SET", "k1", "a string", "PX", longLease)
	kit.Want(t, other, int64(1), "ZADD", "k2", "1", "member")
	wantIdle(t, f, usual)
}

// TestArrivals: a client that waits at one proxy is woken by elements that another proxy adds.
func TestArrivals(t *testing.T) {
	f := start(t, 2, "--lock-keys", "k*")
	f.WantVoting(t, 5)
	other := kit.Connect(t, f.Proxies[1])
	for _, test := range []struct {
		wait, put string
		put1      any
		want      []any
	}{
		{"BLPOP k 0", "RPUSH k a b", int64(2), []any{"k", "a"}},
		{"BRPOP k 0", "EVAL return|redis.call('rpush',KEYS[1],'a') 1 k", int64(1), []any{"k", "a"}},
		{"BZPOPMIN k 0", "ZADD k 1 a", int64(1), []any{"k", "a", "1"}},
		{"BLPOP k2 k 0", "RPUSH k a b", int64(2), []any{"k", "a"}},
	} {
		client := pops(t, f.Proxies[0], strings.Fields(test.wait)...)
		awaitNoCommands(t, f.Masters...)
		words := strings.Fields(test.put)
		for i := range words {
			words[i] = strings.ReplaceAll(words[i], "|", " ")
		}
		kit.Want(t, other, test.put1, words...)
		wantPopped(t, client, test.want...)
		kit.Do(t, other, "DEL", "k")
	}
}

// TestArrivalsOnce: clients of two proxies push elements, and other clients pop each element
// exactly once, repeatedly.
func TestArrivalsOnce(t *testing.T) {
	const producers, consumers, times = 4, 12, 40
	f := start(t, 2, "--lock-keys", "k*")
	f.WantVoting(t, 5)
	var mu sync.Mutex
	taken := map[string]int{}
	var working, taking sync.WaitGroup
	failed := make(chan error, producers+consumers)
	for i := range consumers {
		client := kit.Connect(t, f.Proxies[i%2])
		keys := []string{"k1", "k2"}
		if i%3 == 0 {
			keys = keys[1:]
		}
		taking.Go(func() {
			failed <- consume(client, append(append([]string{"BLPOP"}, keys...), "0"), func(element string) {
				mu.Lock()
				defer mu.Unlock()
				taken[element]++
			})
		})
	}
	for i := range producers {
		client := kit.Connect(t, f.Proxies[i/2%2])
		working.Go(func() {
			for n := range times {
				reply, err := client.Do("RPUSH", fmt.Sprint("k", 1+(i+n)%2), fmt.Sprint(i, "-", n))
				if _, ok := reply.(int64); err != nil || !ok {
					failed <- fmt.Errorf("RPUSH: %v, %w", reply, err)
					return
				}
			}
			failed <- nil
		})
	}
	working.Wait()
	end := kit.Connect(t, f.Proxies[0])
	for range consumers {
		kit.Do(t, end, "RPUSH", "k2", "end")
	}
	taking.Wait()
	for range producers + consumers {
		kit.Must(t, <-failed)
	}
	if len(taken) != producers*times {
		t.Errorf("%d elements were taken, want %d", len(taken), producers*times)
	}
	for element, n := range taken {
		if n != 1 {
			t.Errorf("%s was taken %d times", element, n)
		}
	}
}

// consume pops elements up to the one that marks the end.
func consume(client *redistest.Client, pop []string, take func(element string)) error {
	for {
		reply, err := client.Do(pop...)
		parts, ok := reply.([]any)
		if err != nil || !ok {
			return fmt.Errorf("%v: %v, %w", pop, reply, err)
		}
		if parts[1] == "end" {
			return nil
		}
		take(fmt.Sprint(parts[1]))
	}
}

// TestArrivalsWithoutMasters: one of three masters is killed while a client waits, and the client
// is still woken. When a second master is killed, the wait ends.
func TestArrivalsWithoutMasters(t *testing.T) {
	f := &kit.Fleet{Masters: []*redistest.Server{kit.StartRedis(t), kit.StartRedis(t), kit.StartRedis(t)}}
	for range 2 {
		f.Proxies = append(f.Proxies, kit.StartProxy(t, redistest.URLs(f.Masters), "--lock-keys", "k*"))
	}
	f.WantVoting(t, 3)
	client, other := pops(t, f.Proxies[0], "BLPOP", "k", "0"), kit.Connect(t, f.Proxies[1])
	wantWatched(t, f.Proxies[0], 3)
	kit.Must(t, f.Masters[0].Kill())
	wantWatched(t, f.Proxies[0], 2)
	kit.Want(t, other, int64(1), "RPUSH", "k", "a")
	wantPopped(t, client, "k", "a")

	kit.Must(t, client.Send(redistest.AppendCommand(nil, "BLPOP", "k", "3")))
	kit.WantBlocked(t, f.Proxies[0], 1)
	wantWatched(t, f.Proxies[0], 2)
	kit.Must(t, f.Masters[1].Kill())
	reply, err := client.Receive()
	kit.Must(t, err)
	if text := kit.Text(reply); !strings.HasPrefix(text, "NOQUORUM ") {
		t.Errorf("got %s", text)
	}
}

// TestArrivalsWatchKilled checks that a client is woken even if the connections of the watch break
// together with the change, so that no master reports it.
func TestArrivalsWatchKilled(t *testing.T) {
	f := start(t, 2, "--lock-keys", "k*")
	f.WantVoting(t, 5)
	client, other := pops(t, f.Proxies[0], "BLPOP", "k", "0"), kit.Connect(t, f.Proxies[1])
	wantWatched(t, f.Proxies[0], 5)
	awaitNoCommands(t, f.Masters...)
	for _, master := range f.Masters {
		for _, id := range watchers(t, master) {
			kit.Must(t, kit.Tell(master, "CLIENT", "KILL", "ID", id))
		}
	}
	kit.Want(t, other, int64(1), "RPUSH", "k", "a")
	wantPopped(t, client, "k", "a")
}

// TestArrivalsInNobodysWay: clients that wait for an element do not block other clients' commands
// on the key, and other clients do not block them.
func TestArrivalsInNobodysWay(t *testing.T) {
	f := start(t, 1, "--lock-keys", "k*")
	f.WantVoting(t, 5)
	client, other := pops(t, f.Proxies[0], "BLPOP", "k", "0"), kit.Connect(t, f.Proxies[0])
	kit.Want(t, other, "OK", "SET", "k", "x", "NX", "PX", longLease)
	waiter := kit.Connect(t, f.Proxies[0])
	kit.Must(t, waiter.Send(redistest.AppendCommand(nil, "LOCK", "k", "token", "PX", longLease, "BLOCK", "0")))
	kit.WantBlocked(t, f.Proxies[0], 2)
	kit.Want(t, other, int64(1), "DEL", "k")
	wantGranted(t, waiter)
	kit.Want(t, waiter, int64(1), "UNLOCK", "k", "token")
	kit.Want(t, other, int64(1), "RPUSH", "k", "a")
	wantPopped(t, client, "k", "a")
}

// TestArrivalsEnd: a drain ends a wait immediately with an error that names the cause. A client
// that has disconnected takes no element.
func TestArrivalsEnd(t *testing.T) {
	f := start(t, 2, "--lock-keys", "k*", "--drain-timeout", "10m")
	f.WantVoting(t, 5)
	gone, client := pops(t, f.Proxies[0], "BLPOP", "k", "0"), kit.Connect(t, f.Proxies[0])
	kit.Must(t, gone.Close())
	kit.WantBlocked(t, f.Proxies[0], 0)
	kit.Must(t, client.Send(redistest.AppendCommand(nil, "BLPOP", "k", "0")))
	kit.WantBlocked(t, f.Proxies[0], 1)
	kit.Must(t, f.Proxies[0].Signal(syscall.SIGTERM))
	reply, err := client.Receive()
	kit.Must(t, err)
	if text := kit.Text(reply); text != "ERR the proxy is shutting down; try again" {
		t.Errorf("got %s", text)
	}
	if _, err := client.Receive(); err == nil {
		t.Error(errors.New("the connection stays open"))
	}
	other := kit.Connect(t, f.Proxies[1])
	kit.Want(t, other, int64(1), "RPUSH", "k", "a")
	kit.Want(t, other, int64(1), "LLEN", "k")
}

// TestArrivalsUnderFaults: while masters stop and continue, no element is popped twice, and
// elements are lost only by pops that got an error. Pops that returned nil took no element.
func TestArrivalsUnderFaults(t *testing.T) {
	redistest.SkipShort(t)
	t.Run("a minority stops", func(t *testing.T) { popUnderFaults(t, 2) })
	t.Run("too many stop", func(t *testing.T) { popUnderFaults(t, 3) })
}

// popUnderFaults lets clients push and pop elements while n masters at a time are stopped.
func popUnderFaults(t *testing.T, n int) {
	t.Helper()
	const producers, consumers, rounds = 3, 6, 6
	f := start(t, 2, "--lock-keys", "k*")
	f.WantVoting(t, 5)
	var l ledger
	var working sync.WaitGroup
	end := make(chan struct{})
	work := func(i int, do func(client *redistest.Client, n int) error) {
		client := kit.Connect(t, f.Proxies[i%2])
		working.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-end:
					return
				default:
				}
				if err := do(client, n); err != nil {
					l.fails(err)
					return
				}
			}
		})
	}
	for i := range producers {
		work(i, func(client *redistest.Client, n int) error {
			element := fmt.Sprint(i, "-", n)
			reply, err := client.Do("RPUSH", fmt.Sprint("k", 1+n%2), element)
			_, ok := reply.(int64)
			l.pushed(element, ok)
			time.Sleep(5 * time.Millisecond) // otherwise the load would use all processors
			return err
		})
	}
	for i := range consumers {
		work(i, func(client *redistest.Client, n int) error {
			reply, err := client.Do("BLPOP", fmt.Sprint("k", 1+n%2), fmt.Sprint("k", 2-n%2), "0.05")
			if !l.popped(reply) {
				time.Sleep(20 * time.Millisecond) // otherwise the load would use all processors
			}
			return err
		})
	}
	for round := range rounds {
		time.Sleep(300 * time.Millisecond) // the load continues between two faults
		stopped := []*redistest.Server{f.Masters[round%5], f.Masters[(round+1)%5], f.Masters[(round+2)%5]}[:n]
		for _, master := range stopped {
			kit.Must(t, master.Pause())
		}
		time.Sleep(600 * time.Millisecond) // longer than the proxy waits for a master
		for _, master := range stopped {
			kit.Must(t, master.Continue())
		}
	}
	f.WantVoting(t, 5)
	close(end)
	working.Wait()
	client := kit.Connect(t, f.Proxies[0])
	for {
		reply := kit.Do(t, client, "BLPOP", "k1", "k2", "0.5")
		l.popped(reply)
		if reply == nil {
			break
		}
	}
	l.judge(t)
}

// ledger records pushed and popped elements.
type ledger struct {
	mu sync.Mutex
	// there lists elements whose push was confirmed; perhaps lists elements whose push got an
	// error. taken counts how often each element was popped.
	there, perhaps []string
	taken          map[string]int
	// none counts the pops that returned nil, unknown those that got an error.
	none, unknown int
	errs          []error
}

func (l *ledger) fails(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.errs = append(l.errs, err)
}

func (l *ledger) pushed(element string, told bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if told {
		l.there = append(l.there, element)
	} else {
		l.perhaps = append(l.perhaps, element)
	}
}

// popped records the reply to a pop, and reports whether it is not an error.
func (l *ledger) popped(reply any) (known bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.taken == nil {
		l.taken = map[string]int{}
	}
	switch reply := reply.(type) {
	case []any:
		l.taken[fmt.Sprint(reply[1])]++
	case nil:
		l.none++
	default:
		l.unknown++
		return false
	}
	return true
}

func (l *ledger) judge(t *testing.T) {
	t.Helper()
	kit.Must(t, errors.Join(l.errs...))
	known := map[string]bool{}
	missing := 0
	for _, element := range l.there {
		known[element] = true
		if l.taken[element] == 0 {
			missing++
		}
	}
	for _, element := range l.perhaps {
		known[element] = true
	}
	for element, n := range l.taken {
		if n != 1 || !known[element] {
			t.Errorf("%s was taken %d times, and pushed: %v", element, n, known[element])
		}
	}
	t.Logf("%d pushed, %d perhaps; %d taken, %d missing; %d times nil, %d times an error",
		len(l.there), len(l.perhaps), len(l.taken), missing, l.none, l.unknown)
	if missing > l.unknown {
		t.Errorf("%d elements are missing, and only %d pops did not know", missing, l.unknown)
	}
	if len(l.taken) == 0 || l.none == 0 {
		t.Error("this has tested little")
	}
}
