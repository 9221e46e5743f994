package queue

import "time"

const (
	// parkTime is for how long a queue is kept in which nobody waits: who locks again and again
	// leaves it empty each time.
	parkTime = time.Second
	// mostParked is how many are kept.
	mostParked = 4096
)

// parked is a queue that was empty at a time.
type parked[K comparable] struct {
	key K
	at  time.Time
}

// park keeps an empty queue for a while, and forgets those that were kept long enough.
func (q *Queues[K]) park(key K, line *queue[K], now time.Time) {
	line.emptied = now
	q.parked = append(q.parked, parked[K]{key, now})
	for len(q.parked) > mostParked || now.Sub(q.parked[0].at) >= parkTime {
		oldest := q.parked[0]
		q.parked = q.parked[1:]
		if line := q.byKey[oldest.key]; line != nil && len(line.places) == 0 && line.emptied.Equal(oldest.at) {
			delete(q.byKey, oldest.key)
		}
	}
}
