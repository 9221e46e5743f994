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
	// sharedKeys is the number of shared keys. It is small, so that the honest clients contend.
	// Each client also has its own key.
	sharedKeys = 4
	// lease is much longer than the time for which a client holds a lock.
	lease = 20 * time.Second
	// releaseScript is the script with which lock libraries release a lock.
	releaseScript = `if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("del",KEYS[1]) else return 0 end`
)

// runHonest runs a client that locks, with LOCK or like lock libraries, until ctx ends. proxy is
// the name of the proxy at addr. If recordsTimes is set, the client records the latencies of
// replies.
func runHonest(ctx context.Context, l *lockRecord, addr, name, proxy string, recordsTimes bool) {
	var client *redistest.Client
	defer func() {
		if client != nil {
			_ = client.Close()
		}
	}()
	for turn := 0; ctx.Err() == nil; turn++ {
		var err error
		if client == nil {
			if client, err = redistest.Dial(addr, replyTimeout); err != nil {
				l.countError(proxy + ": " + err.Error())
				client = nil
				pause(ctx)
				continue
			}
		}
		if err := lockOnce(ctx, l, client, name, turn, proxy, recordsTimes); err != nil {
			l.countError(proxy + ": " + err.Error())
			_ = client.Close()
			client = nil
		}
	}
}

// lockOnce reads an ordinary key, takes a lock, holds it for a while, and releases it. It uses LOCK
// and, in every second turn, the commands of lock libraries.
func lockOnce(ctx context.Context, l *lockRecord, client *redistest.Client, name string, turn int, proxy string, recordsTimes bool) error {
	token := fmt.Sprintf("%s-%d", name, turn)
	key, kind := "lock:of:"+name, "LOCK of a key that nobody else wants"
	if n := rand.IntN(sharedKeys + 1); n < sharedKeys {
		key, kind = fmt.Sprintf("lock:%d", n), "LOCK"
	}
	takeCommand, releaseCommand := []string{"LOCK", key, token, "PX", fmt.Sprint(lease.Milliseconds())}, []string{"UNLOCK", key, token}
	if turn%2 == 0 {
		takeCommand, releaseCommand = []string{"SET", key, token, "NX", "PX", fmt.Sprint(lease.Milliseconds())},
			[]string{"EVAL", releaseScript, "1", key, token}
	}
	readAt := time.Now()
	if _, err := client.Do("GET", "ordinary"); err != nil {
		return err
	}
	sent := time.Now()
	reply, err := client.Do(takeCommand...)
	if err != nil {
		return err
	}
	if recordsTimes {
		l.recordLatency("GET", sent.Sub(readAt))
		l.recordLatency(kind, time.Since(sent))
	}
	switch reply := reply.(type) {
	case nil:
		pause(ctx)
		return nil
	case redistest.RespError:
		l.countError(proxy + ": " + string(reply))
		pause(ctx)
		return nil
	default:
		l.recordGrant(key, token, sent.Add(lease*9/10))
	}
	time.Sleep(time.Duration(rand.IntN(2000)) * time.Microsecond) // the pace of a client
	l.recordRelease(key, token)
	// Repeat a failed release: otherwise the lock is held for its whole lease.
	for ctx.Err() == nil {
		reply, err := client.Do(releaseCommand...)
		refusal, isError := reply.(redistest.RespError)
		if err != nil || !isError {
			return err
		}
		l.countError(proxy + ", release: " + string(refusal))
		pause(ctx)
	}
	return nil
}

// pause waits up to 20 ms before another attempt.
func pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(time.Duration(1+rand.IntN(20)) * time.Millisecond):
	}
}
