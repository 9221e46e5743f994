package queue

import "time"

const (
	// parkTime is the time for which Queues keeps an empty queue, because a client that locks again
	// and again leaves its queue empty each time.
	parkTime = time.Second
	// maxParked limits the number of empty queues.
	maxParked = 4096
)

// parkedQueue identifies an empty queue, and holds the time when it was parked.
type parkedQueue[K comparable] struct {
	key K
	at  time.Time
}

// park keeps an empty queue for a while, and removes queues that were kept long enough.
func (q *Queues[K]) park(key K, keyQueue *queue[K], now time.Time) {
	keyQueue.parkedAt = now
	q.parked = append(q.parked, parkedQueue[K]{key, now})
	for len(q.parked) > maxParked || now.Sub(q.parked[0].at) >= parkTime {
		oldest := q.parked[0]
		q.parked = q.parked[1:]
		if keyQueue := q.byKey[oldest.key]; keyQueue != nil && len(keyQueue.tickets) == 0 && keyQueue.parkedAt.Equal(oldest.at) {
			delete(q.byKey, oldest.key)
		}
	}
}
