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

// startPop lets a client of a proxy wait in a BLPOP or a similar command.
func startPop(t *testing.T, proxy *harness.Proxy, words ...string) *redistest.Client {
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

// TestIdlePops lets 200 clients of two proxies wait for elements in four keys: two absent keys, a
// string, and a sorted set. Meanwhile the masters get only the commands that they also get without
// these clients, and the keep-alives of the watches.
func TestIdlePops(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	f := start(t, 2, "--lock-keys", "k*")
	f.WantVoting(t, 5)
	usualCommands := idleCommands(t, f)
	for i := range 200 {
		client := kit.Connect(t, f.Proxies[i%2])
		kit.Must(t, client.Send(redistest.AppendCommand(nil, "BLPOP", "k"+strconv.Itoa(i/2%4),
			"k"+strconv.Itoa((i/2+1)%4), "0")))
	}
	for _, proxy := range f.Proxies {
		kit.WantBlocked(t, proxy, 100)
	}
	otherClient := kit.Connect(t, f.Proxies[0])
	kit.Want(t, otherClient, "OK", "SET", "k1", "a string", "PX", longLease)
	kit.Want(t, otherClient, int64(1), "ZADD", "k2", "1", "member")
	wantIdle(t, f, usualCommands)
}

// TestWakeUpOfPops checks that a client that waits at one proxy is woken by elements that another
// proxy adds.
func TestWakeUpOfPops(t *testing.T) {
	f := start(t, 2, "--lock-keys", "k*")
	f.WantVoting(t, 5)
	otherClient := kit.Connect(t, f.Proxies[1])
	for _, test := range []struct {
		waitCommand, pushCommand string
		pushReply                any
		wantReply                []any
	}{
		{"BLPOP k 0", "RPUSH k a b", int64(2), []any{"k", "a"}},
		{"BRPOP k 0", "EVAL return|redis.call('rpush',KEYS[1],'a') 1 k", int64(1), []any{"k", "a"}},
		{"BZPOPMIN k 0", "ZADD k 1 a", int64(1), []any{"k", "a", "1"}},
		{"BLPOP k2 k 0", "RPUSH k a b", int64(2), []any{"k", "a"}},
	} {
		client := startPop(t, f.Proxies[0], strings.Fields(test.waitCommand)...)
		awaitNoCommands(t, f.Masters...)
		words := strings.Fields(test.pushCommand)
		for i := range words {
			words[i] = strings.ReplaceAll(words[i], "|", " ")
		}
		kit.Want(t, otherClient, test.pushReply, words...)
		wantPopped(t, client, test.wantReply...)
		kit.Do(t, otherClient, "DEL", "k")
	}
}

// TestExactlyOncePops pushes elements by clients of two proxies, repeatedly. Other clients
// pop each element exactly once.
func TestExactlyOncePops(t *testing.T) {
	const producers, consumers, times = 4, 12, 40
	f := start(t, 2, "--lock-keys", "k*")
	f.WantVoting(t, 5)
	var mu sync.Mutex
	popped := map[string]int{}
	var producerTasks, consumerTasks sync.WaitGroup
	errs := make(chan error, producers+consumers)
	for i := range consumers {
		client := kit.Connect(t, f.Proxies[i%2])
		keys := []string{"k1", "k2"}
		if i%3 == 0 {
			keys = keys[1:]
		}
		consumerTasks.Go(func() {
			errs <- consume(client, append(append([]string{"BLPOP"}, keys...), "0"), func(element string) {
				mu.Lock()
				defer mu.Unlock()
				popped[element]++
			})
		})
	}
	for i := range producers {
		client := kit.Connect(t, f.Proxies[i/2%2])
		producerTasks.Go(func() {
			for n := range times {
				reply, err := client.Do("RPUSH", fmt.Sprint("k", 1+(i+n)%2), fmt.Sprint(i, "-", n))
				if _, ok := reply.(int64); err != nil || !ok {
					errs <- fmt.Errorf("RPUSH: %v, %w", reply, err)
					return
				}
			}
			errs <- nil
		})
	}
	producerTasks.Wait()
	endClient := kit.Connect(t, f.Proxies[0])
	for range consumers {
		kit.Do(t, endClient, "RPUSH", "k2", "end")
	}
	consumerTasks.Wait()
	for range producers + consumers {
		kit.Must(t, <-errs)
	}
	if len(popped) != producers*times {
		t.Errorf("%d elements were taken, want %d", len(popped), producers*times)
	}
	for element, n := range popped {
		if n != 1 {
			t.Errorf("%s was taken %d times", element, n)
		}
	}
}

// consume pops elements up to the element that marks the end.
func consume(client *redistest.Client, pop []string, onElement func(element string)) error {
	for {
		reply, err := client.Do(pop...)
		parts, ok := reply.([]any)
		if err != nil || !ok {
			return fmt.Errorf("%v: %v, %w", pop, reply, err)
		}
		if parts[1] == "end" {
			return nil
		}
		onElement(fmt.Sprint(parts[1]))
	}
}

// TestPopsWithoutMasters kills one of three masters while a client waits, and the client is still
// woken. When a second master is killed, the wait ends.
func TestPopsWithoutMasters(t *testing.T) {
	f := &kit.Fleet{Masters: []*redistest.Server{kit.StartRedis(t), kit.StartRedis(t), kit.StartRedis(t)}}
	for range 2 {
		f.Proxies = append(f.Proxies, kit.StartProxy(t, redistest.URLs(f.Masters), "--lock-keys", "k*"))
	}
	f.WantVoting(t, 3)
	client, otherClient := startPop(t, f.Proxies[0], "BLPOP", "k", "0"), kit.Connect(t, f.Proxies[1])
	wantWatched(t, f.Proxies[0], 3)
	kit.Must(t, f.Masters[0].Kill())
	wantWatched(t, f.Proxies[0], 2)
	kit.Want(t, otherClient, int64(1), "RPUSH", "k", "a")
	wantPopped(t, client, "k", "a")

	kit.Must(t, client.Send(redistest.AppendCommand(nil, "BLPOP", "k", "8")))
	kit.WantBlocked(t, f.Proxies[0], 1)
	wantWatched(t, f.Proxies[0], 2)
	kit.Must(t, f.Masters[1].Kill())
	reply, err := client.Receive()
	kit.Must(t, err)
	if text := kit.ReplyText(reply); !strings.HasPrefix(text, "NOQUORUM ") {
		t.Errorf("got %s", text)
	}
}

// TestPopsAfterKilledWatch breaks the connections of the watch just before a change, so that no
// master reports the change. The waiting client is woken nevertheless.
func TestPopsAfterKilledWatch(t *testing.T) {
	f := start(t, 2, "--lock-keys", "k*")
	f.WantVoting(t, 5)
	client, otherClient := startPop(t, f.Proxies[0], "BLPOP", "k", "0"), kit.Connect(t, f.Proxies[1])
	wantWatched(t, f.Proxies[0], 5)
	awaitNoCommands(t, f.Masters...)
	for _, master := range f.Masters {
		for _, id := range watchers(t, master) {
			kit.Must(t, kit.SendToMaster(master, "CLIENT", "KILL", "ID", id))
		}
	}
	kit.Want(t, otherClient, int64(1), "RPUSH", "k", "a")
	wantPopped(t, client, "k", "a")
}

// TestCommandsDuringPops checks that clients that wait for an element do not block other clients'
// commands on the key. Other clients do not block the waiting clients, either.
func TestCommandsDuringPops(t *testing.T) {
	f := start(t, 1, "--lock-keys", "k*")
	f.WantVoting(t, 5)
	client, otherClient := startPop(t, f.Proxies[0], "BLPOP", "k", "0"), kit.Connect(t, f.Proxies[0])
	kit.Want(t, otherClient, "OK", "SET", "k", "x", "NX", "PX", longLease)
	waiter := kit.Connect(t, f.Proxies[0])
	kit.Must(t, waiter.Send(redistest.AppendCommand(nil, "LOCK", "k", "token", "PX", longLease, "BLOCK", "0")))
	kit.WantBlocked(t, f.Proxies[0], 2)
	kit.Want(t, otherClient, int64(1), "DEL", "k")
	wantGranted(t, waiter)
	kit.Want(t, waiter, int64(1), "UNLOCK", "k", "token")
	kit.Want(t, otherClient, int64(1), "RPUSH", "k", "a")
	wantPopped(t, client, "k", "a")
}

// TestPopsDuringDrain checks that a drain ends a wait immediately with an error that names the
// cause. A client that has disconnected takes no element.
func TestPopsDuringDrain(t *testing.T) {
	f := start(t, 2, "--lock-keys", "k*", "--drain-timeout", "10m")
	f.WantVoting(t, 5)
	goneClient, client := startPop(t, f.Proxies[0], "BLPOP", "k", "0"), kit.Connect(t, f.Proxies[0])
	kit.Must(t, goneClient.Close())
	kit.WantBlocked(t, f.Proxies[0], 0)
	kit.Must(t, client.Send(redistest.AppendCommand(nil, "BLPOP", "k", "0")))
	kit.WantBlocked(t, f.Proxies[0], 1)
	kit.Must(t, f.Proxies[0].Signal(syscall.SIGTERM))
	reply, err := client.Receive()
	kit.Must(t, err)
	if text := kit.ReplyText(reply); text != "ERR the proxy is shutting down; try again" {
		t.Errorf("got %s", text)
	}
	if _, err := client.Receive(); err == nil {
		t.Error(errors.New("the connection stays open"))
	}
	otherClient := kit.Connect(t, f.Proxies[1])
	kit.Want(t, otherClient, int64(1), "RPUSH", "k", "a")
	kit.Want(t, otherClient, int64(1), "LLEN", "k")
}

// TestPopsUnderFaults checks that no element is popped twice while masters stop and continue.
// Elements are lost only by pops that got an error. Pops that returned nil took no element.
func TestPopsUnderFaults(t *testing.T) {
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
	var l elementRecord
	var workers sync.WaitGroup
	end := make(chan struct{})
	work := func(i int, do func(client *redistest.Client, n int) error) {
		client := kit.Connect(t, f.Proxies[i%2])
		workers.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-end:
					return
				default:
				}
				if err := do(client, n); err != nil {
					l.addError(err)
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
			l.recordPush(element, ok)
			time.Sleep(5 * time.Millisecond) // otherwise the load would use all processors
			return err
		})
	}
	for i := range consumers {
		work(i, func(client *redistest.Client, n int) error {
			reply, err := client.Do("BLPOP", fmt.Sprint("k", 1+n%2), fmt.Sprint("k", 2-n%2), "0.05")
			if !l.recordPop(reply) {
				time.Sleep(20 * time.Millisecond) // otherwise the load would use all processors
			}
			return err
		})
	}
	for round := range rounds {
		time.Sleep(300 * time.Millisecond) // the load continues between two faults
		stoppedMasters := []*redistest.Server{f.Masters[round%5], f.Masters[(round+1)%5], f.Masters[(round+2)%5]}[:n]
		for _, master := range stoppedMasters {
			kit.Must(t, master.Pause())
		}
		time.Sleep(600 * time.Millisecond) // longer than the proxy waits for a master
		for _, master := range stoppedMasters {
			kit.Must(t, master.Continue())
		}
	}
	f.WantVoting(t, 5)
	close(end)
	workers.Wait()
	client := kit.Connect(t, f.Proxies[0])
	for {
		reply := kit.Do(t, client, "BLPOP", "k1", "k2", "0.5")
		l.recordPop(reply)
		if reply == nil {
			break
		}
	}
	l.check(t)
}

// elementRecord records pushed and popped elements.
type elementRecord struct {
	mu sync.Mutex
	// pushedElements lists elements whose push was confirmed; maybePushedElements lists elements
	// whose push got an error. popCounts holds the number of pops of each element.
	pushedElements, maybePushedElements []string
	popCounts                           map[string]int
	// emptyPops counts the pops that returned nil, unknownPops the pops that got an error.
	emptyPops, unknownPops int
	errs                   []error
}

func (l *elementRecord) addError(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.errs = append(l.errs, err)
}

func (l *elementRecord) recordPush(element string, confirmed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if confirmed {
		l.pushedElements = append(l.pushedElements, element)
	} else {
		l.maybePushedElements = append(l.maybePushedElements, element)
	}
}

// recordPop records the reply to a pop. It returns false if the reply is an error.
func (l *elementRecord) recordPop(reply any) (ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.popCounts == nil {
		l.popCounts = map[string]int{}
	}
	switch reply := reply.(type) {
	case []any:
		l.popCounts[fmt.Sprint(reply[1])]++
	case nil:
		l.emptyPops++
	default:
		l.unknownPops++
		return false
	}
	return true
}

func (l *elementRecord) check(t *testing.T) {
	t.Helper()
	kit.Must(t, errors.Join(l.errs...))
	wasPushed := map[string]bool{}
	missing := 0
	for _, element := range l.pushedElements {
		wasPushed[element] = true
		if l.popCounts[element] == 0 {
			missing++
		}
	}
	for _, element := range l.maybePushedElements {
		wasPushed[element] = true
	}
	for element, n := range l.popCounts {
		if n != 1 || !wasPushed[element] {
			t.Errorf("%s was taken %d times, and pushed: %v", element, n, wasPushed[element])
		}
	}
	t.Logf("%d pushed, %d perhaps; %d taken, %d missing; %d times nil, %d times an error",
		len(l.pushedElements), len(l.maybePushedElements), len(l.popCounts), missing, l.emptyPops, l.unknownPops)
	if missing > l.unknownPops {
		t.Errorf("%d elements are missing, and only %d pops did not know", missing, l.unknownPops)
	}
	if len(l.popCounts) == 0 || l.emptyPops == 0 {
		t.Error("this has tested little")
	}
}
