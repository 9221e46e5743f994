package proxy

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"redlock-proxy/internal/redistest"
)

const megabyte = 1 << 20

// checkMemoryDuring runs an attack, while another client sends commands and gets its replies. It
// fails if the reachable memory grows by more than limit bytes meanwhile.
func (b *testServer) checkMemoryDuring(limit uint64, attack func()) {
	b.Helper()
	other := b.connect()
	other.check("PING\r\n", pong)
	before := heapInUse()
	stop, peaks := make(chan struct{}), make(chan uint64)
	go func() {
		peak := uint64(0)
		for {
			select {
			case <-stop:
				peaks <- peak
				return
			case <-time.After(time.Millisecond):
			}
			if _, err := other.conn.Write([]byte(array("LOCK", "k", "t", "PX", "5000"))); err != nil {
				b.Errorf("the other client: %v", err)
			}
			if reply, err := other.in.ReadString('\n'); reply != ":5000\r\n" {
				b.Errorf("the other client: %q, %v", reply, err)
			}
			peak = max(peak, heapUpTo(before+limit))
		}
	}()
	defer func() {
		close(stop)
		if peak := <-peaks; peak > before+limit {
			b.Errorf("%d KB more reachable than before, limit %d KB", (peak-before)>>10, limit>>10)
		}
	}()
	attack()
}

// heapInUse returns the bytes of reachable memory.
func heapInUse() uint64 {
	runtime.GC()
	runtime.GC() // the first collection does not free the buffers in pools
	return heapNow()
}

// heapUpTo returns heapNow or, if that exceeds the limit, heapInUse. Under the race detector, a
// pool drops one buffer of four. For a client that sends byte by byte, that is gigabytes of
// garbage. On busy processors a collection may end late.
func heapUpTo(limit uint64) uint64 {
	if now := heapNow(); now <= limit {
		return now
	}
	return heapInUse()
}

// heapNow returns the bytes of memory in use, including garbage since the last collection.
func heapNow() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestLargeCommandMemoryIsFreed checks that the proxy frees the memory of a large command at
// the command's end, even if the client stays connected.
func TestLargeCommandMemoryIsFreed(t *testing.T) {
	redistest.SkipShort(t)
	b := serveLocks(t, &scriptedLocks{})
	large, many := array("ECHO", strings.Repeat("x", 900_000)),
		"*100000\r\n"+strings.TrimPrefix(array("PING"), "*1\r\n")+strings.Repeat("$1\r\nx\r\n", 99_999)
	var peers []*peer
	for range 20 {
		p := b.connect()
		p.check("PING\r\n", pong)
		peers = append(peers, p)
	}
	before := heapInUse()
	for _, p := range peers {
		p.check(large, "$900000\r\n"+strings.Repeat("x", 900_000)+"\r\n")
		p.check(many, "-ERR wrong number of arguments for 'ping' command\r\n")
		p.check(array("LOCK", "k", "t", "PX", "5000"), ":5000\r\n")
	}
	limit := uint64(len(peers)*20<<10 + megabyte)
	b.eventually("free memory", func() bool { return heapInUse() < before+limit })
	runtime.KeepAlive(peers)
}

// TestIdleClientMemory checks that idle clients hold no buffers, even after commands. The
// limit includes the memory of the test's clients, which are in this process.
func TestIdleClientMemory(t *testing.T) {
	const clients, perClient = 100, 16 << 10
	b := serveLocks(t, &scriptedLocks{})
	var peers []*peer
	before := heapInUse()
	for range clients {
		p := b.connect()
		p.check(array("LOCK", "k", "t", "PX", "5000")+array("foo"), ":5000\r\n"+unknownReply)
		p.check(array("LOCK", "k", "t", "PX", "5000", "BLOCK", "0")+"PING\r\n", ":5000\r\n"+pong)
		peers = append(peers, p)
		runtime.GC() // so that buffers are not reused
	}
	b.eventually("free memory", func() bool { return heapInUse() < before+clients*perClient })
	runtime.KeepAlive(peers)
}
