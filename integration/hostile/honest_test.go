//go:build integration

package hostile

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"redlock-proxy/internal/redistest"
)

const (
	// keys are few, so that the honest clients contend. Beside them each has a key of its own.
	keys = 4
	// lease is far longer than a lock is held.
	lease = 20 * time.Second
	// release is what lock libraries send.
	release = `if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("del",KEYS[1]) else return 0 end`
)

// honest is a client that locks, by LOCK or as lock libraries do, until ctx ends; proxy names the
// one at addr. With timed it is noted how long it waits for replies.
func honest(ctx context.Context, l *ledger, addr, name, proxy string, timed bool) {
	var client *redistest.Client
	defer func() {
		if client != nil {
			_ = client.Close()
		}
	}()
	for turn := 0; ctx.Err() == nil; turn++ {
		var err error
		if client == nil {
			if client, err = redistest.Dial(addr, patience); err != nil {
				l.failed(proxy + ": " + err.Error())
				client = nil
				pause(ctx)
				continue
			}
		}
		if err := lockOnce(ctx, l, client, name, turn, proxy, timed); err != nil {
			l.failed(proxy + ": " + err.Error())
			_ = client.Close()
			client = nil
		}
	}
}

// lockOnce reads an ordinary key, takes a lock, by LOCK or in every second turn as lock libraries
// do, holds it for a moment, and releases it.
func lockOnce(ctx context.Context, l *ledger, client *redistest.Client, name string, turn int, proxy string, timed bool) error {
	token := fmt.Sprintf("%s-%d", name, turn)
	key, what := "lock:of:"+name, "LOCK of a key that nobody else wants"
	if n := rand.IntN(keys + 1); n < keys {
		key, what = fmt.Sprintf("lock:%d", n), "LOCK"
	}
	take, free := []string{"LOCK", key, token, "PX", fmt.Sprint(lease.Milliseconds())}, []string{"UNLOCK", key, token}
	if turn%2 == 0 {
		take, free = []string{"SET", key, token, "NX", "PX", fmt.Sprint(lease.Milliseconds())}, []string{"EVAL", release, "1", key, token}
	}
	read := time.Now()
	if _, err := client.Do("GET", "ordinary"); err != nil {
		return err
	}
	sent := time.Now()
	reply, err := client.Do(take...)
	if err != nil {
		return err
	}
	if timed {
		l.took("GET", sent.Sub(read))
		l.took(what, time.Since(sent))
	}
	switch reply := reply.(type) {
	case nil:
		pause(ctx)
		return nil
	case redistest.RespError:
		l.failed(proxy + ": " + string(reply))
		pause(ctx)
		return nil
	default:
		l.granted(key, token, sent.Add(lease*9/10))
	}
	time.Sleep(time.Duration(rand.IntN(2000)) * time.Microsecond) // the pace of a client
	l.leaves(key, token)
	for ctx.Err() == nil { // a release that failed is said again: else the lock stands for the whole lease
		reply, err := client.Do(free...)
		refusal, isError := reply.(redistest.RespError)
		if err != nil || !isError {
			return err
		}
		l.failed(proxy + ", release: " + string(refusal))
		pause(ctx)
	}
	return nil
}

// pause waits a moment before another try.
func pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(time.Duration(1+rand.IntN(20)) * time.Millisecond):
	}
}
