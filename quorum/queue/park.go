package queue

import "time"

const (
	// parkTime is how long an empty queue is kept: a client that locks again and again leaves it
	// empty each time.
	parkTime = time.Second
	// maxParked limits the number of empty queues.
	maxParked = 4096
)

type parked[K comparable] struct {
	key K
	at  time.Time
}

// park keeps an empty queue for a while, and removes queues that were kept long enough.
func (q *Queues[K]) park(key K, line *queue[K], now time.Time) {
	line.emptied = now
	q.parked = append(q.parked, parked[K]{key, now})
	for len(q.parked) > maxParked || now.Sub(q.parked[0].at) >= parkTime {
		oldest := q.parked[0]
		q.parked = q.parked[1:]
		if line := q.byKey[oldest.key]; line != nil && len(line.places) == 0 && line.emptied.Equal(oldest.at) {
			delete(q.byKey, oldest.key)
		}
	}
}
