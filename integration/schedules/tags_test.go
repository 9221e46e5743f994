//go:build integration

package schedules

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// taggedProxy starts a proxy that keeps the keys with a tag together.
func (f *fleet) taggedProxy(t *testing.T) *proxy {
	t.Helper()
	return f.startProxy(t, "--lock-keys", "*{lock:*", "--lock-tags", "*")
}

// loseReplies sends a command that is executed and gets NOQUORUM: the proxy gets no reply about
// lock:k until the returned holds are discarded.
func loseReplies(t *testing.T, f *fleet, p *proxy, client *redistest.Client, command ...string) holds {
	t.Helper()
	var heldReplies holds
	for _, link := range p.links {
		started := false // a read of the key comes first
		heldReplies = append(heldReplies, link.HoldReplies(func(c []byte) bool {
			started = started || bytes.Contains(c, []byte("lock:k")) && (bytes.Contains(c, []byte("\r\nNX\r\n")) ||
				bytes.Contains(c, []byte("redlock:b")))
			return started && bytes.Contains(c, []byte("lock:k"))
		}))
	}
	if got := kit.Do(t, client, command...); !kit.IsNoQuorum(got) {
		t.Fatalf("%v: %v, want NOQUORUM", command, got)
	}
	return heldReplies
}

// TestExtendBeforePendingUndo covers a LOCK of a minute that gets NOQUORUM, but holds the key.
// Before its proxy can undo it, another proxy grants an EXTEND to 10 s. The lock is kept for these
// 10 s.
func TestExtendBeforePendingUndo(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"lock:k", "x:{lock:k}"} {
		t.Run(key, func(t *testing.T) {
			f := startFleet(t, 3)
			p, otherProxy := f.taggedProxy(t), f.taggedProxy(t)
			client, rival := connect(t, p), connect(t, otherProxy)
			heldReplies := loseReplies(t, f, p, client, "LOCK", key, "t", "PX", "60000")
			validUntil := wantGrant(t, rival, "EXTEND", key, "t", "PX", "10000")
			heldReplies.discard()
			p.wantVoting(t)
			wantHeldUntil(t, rival, key, validUntil)
		})
	}
}

// TestPendingUndoAndTag covers a LOCK of the key that is the tag. The LOCK gets NOQUORUM, but holds
// the key. Before its proxy can undo it, another key of the tag is set, and in one case removed
// again. Soon the key of the LOCK is free.
func TestPendingUndoAndTag(t *testing.T) {
	t.Parallel()
	for _, removed := range []bool{false, true} {
		t.Run(fmt.Sprint("removed ", removed), func(t *testing.T) {
			f := startFleet(t, 3)
			p, otherProxy := f.taggedProxy(t), f.taggedProxy(t)
			client, rival := connect(t, p), connect(t, otherProxy)
			heldReplies := loseReplies(t, f, p, client, "LOCK", "lock:k", "t", "PX", longTTL)
			if awaitGrant(t, rival, time.Now().Add(kit.WaitLimit), "LOCK", "x:{lock:k}", "u", "PX", "30000").IsZero() {
				t.Fatal("the other key is not granted")
			}
			if removed {
				kit.Do(t, rival, "UNLOCK", "x:{lock:k}", "u") // takes effect even after NOQUORUM
			}
			heldReplies.discard()
			p.wantVoting(t)
			wantNotHeld(t, rival, "lock:k")
		})
	}
}

// TestTaggedClientDisconnect disconnects the client of a LOCK while its proxy asks the masters to
// accept the LOCK. Soon the key is free.
func TestTaggedClientDisconnect(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"lock:k", "x:{lock:k}"} {
		t.Run(key, func(t *testing.T) {
			f := startFleet(t, 3)
			p, otherProxy := f.taggedProxy(t), f.taggedProxy(t)
			client, rival := connect(t, p), connect(t, otherProxy)
			wantGrant(t, rival, "LOCK", "y:{lock:k}", "u", "PX", longTTL)
			accepts := p.holdAccepts("lock:k", "keep", f.allMasters()...)
			reply := sendAsync(client, "LOCK", key, "t", "PX", longTTL)
			accepts.waitFor(t, 2)
			kit.Must(t, client.Reset())
			time.Sleep(200 * time.Millisecond) // the proxy notices that its client has disconnected
			accepts.release()
			t.Log(<-reply)
			wantNotHeld(t, rival, key)
		})
	}
}

// tryLock takes a lock as Redisson does.
const tryLock = `if redis.call('exists', KEYS[1]) == 0 or redis.call('hexists', KEYS[1], ARGV[2]) == 1 then
redis.call('hincrby', KEYS[1], ARGV[2], 1) redis.call('pexpire', KEYS[1], ARGV[1]) return nil end return redis.call('pttl', KEYS[1])`

// TestUndoOfLostLockCommands covers a command that takes a key and gets NOQUORUM, but holds the
// key. Soon after the network works again, the key is free.
func TestUndoOfLostLockCommands(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	for _, tags := range []bool{false, true} {
		for _, withNeighbor := range []bool{false, true} {
			for name, command := range map[string][]string{
				"LOCK": {"LOCK", "KEY", "t", "PX", longTTL}, "SET NX": {"SET", "KEY", "t", "NX", "PX", longTTL},
				"Redisson": {"EVAL", tryLock, "1", "KEY", longTTL, "me:1"},
			} {
				for _, key := range []string{"lock:k", "x:{lock:k}"} {
					if !tags && (withNeighbor || key != "lock:k") {
						continue
					}
					t.Run(fmt.Sprintf("tags %v, beside %v, %s of %s", tags, withNeighbor, name, key), func(t *testing.T) {
						f := startFleet(t, 3)
						startProxy := f.taggedProxy
						if !tags {
							startProxy = func(t *testing.T) *proxy { return f.startProxy(t) }
						}
						p, otherProxy := startProxy(t), startProxy(t)
						client, rival := connect(t, p), connect(t, otherProxy)
						if withNeighbor {
							wantGrant(t, rival, "LOCK", "y:{lock:k}", "u", "PX", longTTL)
						}
						words := append([]string(nil), command...)
						for i := range words {
							if words[i] == "KEY" {
								words[i] = key
							}
						}
						heldReplies := loseReplies(t, f, p, client, words...)
						heldReplies.discard()
						p.wantVoting(t)
						wantNotHeld(t, rival, key)
					})
				}
			}
		}
	}
}

// TestTaggedUnlockRetry covers an UNLOCK of a held lock that gets NOQUORUM, because each master
// gets none of its commands, or only the first command. Soon after the network works again, the key
// is free.
func TestTaggedUnlockRetry(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	for _, key := range []string{"lock:k", "x:{lock:k}"} {
		for _, lostPart := range []string{"everything", "accepts"} {
			for _, lockedThrough := range []string{"the same", "another"} {
				switch {
				case lostPart == "everything" && lockedThrough == "another":
					// No proxy knows which version the client meant.
					continue
				case lostPart == "accepts" && lockedThrough == "the same" && key == "lock:k":
					// The UNLOCK is one round, without accepts.
					continue
				}
				t.Run(key+", "+lostPart+" through "+lockedThrough, func(t *testing.T) {
					f := startFleet(t, 3)
					p, otherProxy := f.taggedProxy(t), f.taggedProxy(t)
					rival := connect(t, otherProxy)
					if lockedThrough == "the same" {
						wantGrant(t, connect(t, p), "LOCK", key, "t", "PX", longTTL)
					} else {
						wantGrant(t, rival, "LOCK", key, "t", "PX", longTTL)
					}
					f.wantCells(t, "lock:k", 3)
					var delayedCommands holds
					for _, link := range p.links {
						n := 0
						delayedCommands = append(delayedCommands, link.HoldCommands(func(c []byte) bool {
							if !bytes.Contains(c, []byte("lock:k")) {
								return false
							}
							n++
							return lostPart == "everything" || n > 1
						}))
					}
					if got := kit.Do(t, connect(t, p), "UNLOCK", key, "t"); !kit.IsNoQuorum(got) {
						t.Fatalf("UNLOCK: %v, want NOQUORUM", got)
					}
					delayedCommands.discard()
					p.wantVoting(t)
					wantNotHeld(t, rival, key)
				})
			}
		}
	}
}

// wantCells waits until n masters have a value at a key.
func (f *fleet) wantCells(t *testing.T, key string, n int) {
	t.Helper()
	kit.Eventually(t, func() error {
		count := 0
		for _, master := range f.masters {
			if readKeys(t, master, key)[0].value != nil {
				count++
			}
		}
		if count != n {
			return fmt.Errorf("%d masters hold %s, want %d", count, key, n)
		}
		return nil
	})
}

// TestExtendDuringUndeliveredReply takes a lock by a script whose client does not read the reply.
// The client extends the lock on another connection, and then its first connection breaks. The
// extended lease is kept.
func TestExtendDuringUndeliveredReply(t *testing.T) {
	t.Parallel()
	f := startFleet(t, 3)
	p, otherProxy := f.startProxy(t), f.startProxy(t)
	client, second, rival := connect(t, p), connect(t, p), connect(t, otherProxy)
	kit.Must(t, client.ShrinkReceiveBuffer())
	const scripts = 30
	for i := range scripts {
		kit.Must(t, client.Send(redistest.AppendCommand(nil, "EVAL",
			`redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', '60000') return string.rep('x', 900000)`, "1",
			fmt.Sprint("lock:", i), "t")))
	}
	last := -1
	// No event shows that the proxy waits for its client. So it waits if no script runs for a
	// while.
	for deadline := time.Now().Add(kit.WaitLimit); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		for last+1 < scripts && len(f.holders(t, fmt.Sprint("lock:", last+1), "t")) == 3 {
			last++
			deadline = time.Now().Add(3 * time.Second)
		}
	}
	if last < 0 || last == scripts-1 {
		t.Fatalf("the last script that ran is %d", last)
	}
	key := fmt.Sprint("lock:", last)
	validUntil := wantGrant(t, second, "EXTEND", key, "t", "PX", "10000")
	kit.Must(t, client.Reset())
	wantHeldUntil(t, rival, key, validUntil)
}
