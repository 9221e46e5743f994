//go:build integration

package lockkeys

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// These scripts reimplement the commands of Redisson's RLock, a hash with the holder's name and a
// counter.
const (
	// rlockTake returns nil if the caller now holds the lock, otherwise the remaining time of the
	// lock.
	rlockTake = `local key, ms, holder = KEYS[1], ARGV[1], ARGV[2]
if redis.call('exists', key) == 1 and redis.call('hexists', key, holder) == 0 then return redis.call('pttl', key) end
redis.call('hincrby', key, holder, 1)
redis.call('pexpire', key, ms)
return nil`
	// rlockRelease returns nil if the caller does not hold the lock, and 0 if the caller still
	// holds it. It returns 1 if it frees the lock and notifies the waiters.
	rlockRelease = `local key, channel, message, ms, holder, tell = KEYS[1], KEYS[2], ARGV[1], ARGV[2], ARGV[3], ARGV[4]
if redis.call('hexists', key, holder) == 0 then return nil end
if redis.call('hincrby', key, holder, -1) > 0 then redis.call('pexpire', key, ms) return 0 end
redis.call('del', key)
redis.call(tell, channel, message)
return 1`
	// rlockExtend is the script with which Redisson's watchdog extends a lock.
	rlockExtend = `if redis.call('hexists', KEYS[1], ARGV[2]) == 0 then return 0 end return redis.call('pexpire', KEYS[1], ARGV[1])`
)

func takeCommand(key, holder string) []string {
	return []string{"EVAL", rlockTake, "1", key, "30000", holder}
}
func extendCommand(key, holder string) []string {
	return []string{"EVAL", rlockExtend, "1", key, "30000", holder}
}
func releaseCommand(key, holder string) []string {
	return []string{"EVAL", rlockRelease, "2", key, "redisson_lock__channel:{" + key + "}", "0", "30000", holder, "publish"}
}

// TestRLock checks that a client can lock twice, extend, and release twice, through two proxies.
func TestRLock(t *testing.T) {
	masters, upstream := redistest.URLs(kit.StartMasters(t)), kit.StartRedis(t)
	args := kit.LockKeyArgs(upstream)
	firstProxy, secondProxy := kit.StartProxy(t, masters, args...), kit.StartProxy(t, masters, args...)
	a, b := kit.Connect(t, firstProxy), kit.Connect(t, secondProxy)
	waiter := kit.Connect(t, secondProxy)
	kit.Do(t, waiter, "SUBSCRIBE", "redisson_lock__channel:{lock:r}")

	const key = "lock:r"
	kit.Want(t, a, nil, takeCommand(key, "a:1")...)
	kit.Want(t, a, nil, takeCommand(key, "a:1")...)
	kit.Want(t, b, "2", "HGET", key, "a:1")
	remaining, ok := kit.Do(t, b, takeCommand(key, "b:1")...).(int64)
	if !ok || remaining < 1000 || remaining > 30000 {
		t.Fatalf("the other is told %v", remaining)
	}
	kit.Want(t, b, nil, releaseCommand(key, "b:1")...)
	kit.Want(t, b, int64(0), extendCommand(key, "b:1")...)
	kit.Want(t, a, int64(1), extendCommand(key, "a:1")...)
	kit.Want(t, a, int64(0), releaseCommand(key, "a:1")...)
	kit.Want(t, b, int64(1), "HEXISTS", key, "a:1")
	kit.Want(t, a, nil, takeCommand(key, "a:1")...)
	// The release goes through the other proxy, as after a reconnect.
	kit.Want(t, b, int64(0), releaseCommand(key, "a:1")...)
	kit.Want(t, a, int64(1), releaseCommand(key, "a:1")...)
	kit.Want(t, b, "none", "TYPE", key)
	message, err := waiter.Receive()
	kit.Must(t, err)
	if got := fmt.Sprint(message); got != "[message redisson_lock__channel:{lock:r} 0]" {
		t.Errorf("the waiter is told %s", got)
	}
	kit.Want(t, b, nil, takeCommand(key, "b:1")...)
	kit.Want(t, b, int64(1), releaseCommand(key, "b:1")...)
}

// TestRLockExclusion checks that, of many clients of two proxies, only one holds the lock at a
// time, however often it takes the lock again.
func TestRLockExclusion(t *testing.T) {
	redistest.SkipShort(t)
	masters, upstream := redistest.URLs(kit.StartMasters(t)), kit.StartRedis(t)
	args := kit.LockKeyArgs(upstream)
	proxies := []string{kit.StartProxy(t, masters, args...).Addr(), kit.StartProxy(t, masters, args...).Addr()}
	var holders, entries atomic.Int64
	var clients sync.WaitGroup
	for i := range 8 {
		client := kit.Dial(t, proxies[i%2])
		clients.Go(func() {
			holder := fmt.Sprintf("%d:1", i)
			send := func(words ...string) any {
				reply, err := client.Do(words...)
				if err != nil {
					t.Error(err)
				}
				return reply
			}
			releaseAll := func() { // after a late reply, until the holder has nothing
				for reply := any(int64(0)); reply != nil && !t.Failed(); {
					reply = send(releaseCommand("lock:e", holder)...)
					if failure, failed := reply.(redistest.RespError); failed && !kit.IsLate(reply) {
						t.Errorf("a release is answered %v", failure)
					}
				}
			}
			for entries.Load() < 60 && !t.Failed() {
				if reply := send(takeCommand("lock:e", holder)...); reply != nil {
					if kit.IsLate(reply) {
						releaseAll()
					} else if _, isTime := reply.(int64); !isTime {
						t.Errorf("a take is answered %v", reply)
					}
					time.Sleep(time.Millisecond) // sets the pace of a client
					continue
				}
				if n := holders.Add(1); n != 1 {
					t.Errorf("%d are inside", n)
				}
				secondTake := send(takeCommand("lock:e", holder)...)
				if kit.IsLate(secondTake) {
					holders.Add(-1)
					releaseAll()
					continue
				}
				firstRelease := send(releaseCommand("lock:e", holder)...)
				entries.Add(1)
				holders.Add(-1)
				lastRelease := send(releaseCommand("lock:e", holder)...)
				firstWasLate, lastWasLate := kit.IsLate(firstRelease), kit.IsLate(lastRelease)
				if secondTake != nil || firstRelease != int64(0) && !firstWasLate ||
					lastRelease != int64(1) && !lastWasLate && !(firstWasLate && lastRelease == int64(0)) {
					t.Errorf("again %v, out %v, last %v", secondTake, firstRelease, lastRelease)
				}
				if firstWasLate || lastWasLate {
					releaseAll()
				}
			}
		})
	}
	clients.Wait()
	t.Logf("entered %d times", entries.Load())
}
