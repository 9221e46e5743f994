package queue

import "time"

const (
	// parkTime is the time for which Queues keeps an empty queue, because a client that locks again
	// and again leaves its queue empty each time.
	parkTime = time.Second
	// maxParkedQueues limits the number of empty queues.
	maxParkedQueues = 4096
)

// parkedQueue identifies an empty queue, and holds the time when it was parked.
type parkedQueue[K comparable] struct {
	key K
	at  time.Time
}

// park keeps an empty queue for a while, and removes queues that were kept long enough.
func (q *Queues[K]) park(key K, keyQueue *queue[K], now time.Time) {
	keyQueue.parkedAt = now
	q.parkedQueues = append(q.parkedQueues, parkedQueue[K]{key, now})
	for len(q.parkedQueues) > maxParkedQueues || now.Sub(q.parkedQueues[0].at) >= parkTime {
		oldest := q.parkedQueues[0]
		q.parkedQueues = q.parkedQueues[1:]
		if keyQueue := q.byKey[oldest.key]; keyQueue != nil && len(keyQueue.tickets) == 0 && keyQueue.parkedAt.Equal(oldest.at) {
			delete(q.byKey, oldest.key)
		}
	}
}
