package quorum

import (
	"sync"
	"time"

	"redlock-proxy/quorum/contained"
)

// background is work that begins later and ends with the cluster.
type background struct {
	mu     sync.Mutex
	closed bool
	tasks  sync.WaitGroup
}

// after calls f once d is over, unless the cluster has stopped by then.
func (c *generation) after(d time.Duration, f func()) {
	time.AfterFunc(d, func() {
		b := &c.background
		b.mu.Lock()
		if b.closed {
			b.mu.Unlock()
			return
		}
		b.tasks.Add(1)
		b.mu.Unlock()
		defer b.tasks.Done()
		if err := contained.Run(func() error { f(); return nil }); err != nil {
			c.log.Error("a task in the background failed", "cause", err)
		}
	})
}

// close lets nothing begin any more, and waits for what has begun.
func (b *background) close() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.tasks.Wait()
}
