package main

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// stackExchange sends LockTake, LockRelease, LockExtend and LockQuery like StackExchange.Redis with
// a Redis before 8.4: a conditional transaction, on one connection that all threads share.
type stackExchange struct {
	socket *socket
	name   string
}

func (l stackExchange) do(_ context.Context, r request) (any, error) {
	switch r.operation {
	case "take":
		return l.take(r.key, l.name, r.duration(0)), nil
	case "release":
		return l.release(r.key, l.name), nil
	case "extend":
		return l.extend(r.key, l.name, r.duration(0)), nil
	case "query":
		return toPrintable(l.socket.call("GET", r.key)), nil
	case "threads":
		threads, _ := strconv.Atoi(r.arguments[0])
		return l.runThreads(r.key, threads), nil
	}
	return nil, errOperation
}

// take takes a lock: with SETNX if the lease is 0, with EX if the lease is in whole seconds, and
// otherwise with PX.
func (l stackExchange) take(key, value string, ttl time.Duration) any {
	switch {
	case ttl == 0:
		return l.socket.call("SETNX", key, value) == int64(1)
	case ttl%time.Second == 0:
		return l.socket.call("SET", key, value, "EX", strconv.Itoa(int(ttl/time.Second)), "NX") == "OK"
	}
	return l.socket.call("SET", key, value, "PX", strconv.FormatInt(ttl.Milliseconds(), 10), "NX") == "OK"
}

func (l stackExchange) release(key, value string) any {
	return l.doIfEqual(key, value, "DEL", key)
}

func (l stackExchange) extend(key, value string, ttl time.Duration) any {
	if ttl%time.Second == 0 {
		return l.doIfEqual(key, value, "EXPIRE", key, strconv.Itoa(int(ttl/time.Second)))
	}
	return l.doIfEqual(key, value, "PEXPIRE", key, strconv.FormatInt(ttl.Milliseconds(), 10))
}

// doIfEqual executes a command if the key has the value. No other thread can send a command between
// the check and the command.
func (l stackExchange) doIfEqual(key, value string, command ...string) any {
	l.socket.mutex.Lock()
	watchReplies := l.socket.send([]string{"WATCH", key}, []string{"GET", key})
	<-watchReplies[0]
	if <-watchReplies[1] != value {
		unwatchReplies := l.socket.send([]string{"UNWATCH"})
		l.socket.mutex.Unlock()
		<-unwatchReplies[0]
		return false
	}
	replies := l.socket.send([]string{"MULTI"}, command, []string{"EXEC"})
	l.socket.mutex.Unlock()
	execReply := <-replies[2]
	results, ok := execReply.([]any)
	if execReply == nil {
		return false
	}
	if !ok || len(results) != 1 {
		return fmt.Sprint(toPrintable(<-replies[0]), toPrintable(<-replies[1]), toPrintable(execReply))
	}
	return results[0] == int64(1)
}

// runThreads lets many threads take and release a shared lock and their own locks, and send
// ordinary commands, on the shared connection.
func (l stackExchange) runThreads(key string, threads int) any {
	const turns = 5
	var holders, grants, overlaps, unexpectedReplies atomic.Int32
	var workers sync.WaitGroup
	for n := range threads {
		workers.Go(func() {
			value, ownKey, data := fmt.Sprint(l.name, n), fmt.Sprint(key, ":", n), fmt.Sprint("data:", key, ":", n)
			for turn := 0; turn < turns; {
				if l.take(ownKey, value, time.Minute) != true || l.socket.call("SET", data, value) != "OK" {
					unexpectedReplies.Add(1)
				}
				if l.take(key, value, time.Minute) == true {
					turn++
					grants.Add(1)
					if holders.Add(1) > 1 {
						overlaps.Add(1)
					}
					if l.socket.call("GET", data) != value || l.extend(key, value, 2*time.Minute) != true {
						unexpectedReplies.Add(1)
					}
					holders.Add(-1)
					if l.release(key, value) != true {
						unexpectedReplies.Add(1)
					}
				}
				if l.release(ownKey, value) != true || l.release(ownKey, value) != false {
					unexpectedReplies.Add(1)
				}
			}
		})
	}
	workers.Wait()
	return fmt.Sprintf("%d grants, %d overlaps, %d odd replies", grants.Load(), overlaps.Load(), unexpectedReplies.Load())
}
