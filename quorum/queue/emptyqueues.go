package queue

import "time"

const (
	// emptyQueueTime is the time for which Queues keeps an empty queue, because a client that locks
	// again and again leaves its queue empty each time.
	emptyQueueTime = time.Second
	// maxEmptyQueues limits the number of empty queues that Queues keeps.
	maxEmptyQueues = 4096
)

// emptyQueue holds the key of an empty queue, and the time at which keepEmpty was called for it.
type emptyQueue[K comparable] struct {
	key K
	at  time.Time
}

// keepEmpty keeps an empty queue for emptyQueueTime, and removes queues that were kept for that
// time.
func (q *Queues[K]) keepEmpty(key K, keyQueue *queue[K], now time.Time) {
	keyQueue.keptSince = now
	q.emptyQueues = append(q.emptyQueues, emptyQueue[K]{key, now})
	for len(q.emptyQueues) > maxEmptyQueues || now.Sub(q.emptyQueues[0].at) >= emptyQueueTime {
		oldest := q.emptyQueues[0]
		q.emptyQueues = q.emptyQueues[1:]
		if keyQueue := q.byKey[oldest.key]; keyQueue != nil && len(keyQueue.tickets) == 0 && keyQueue.keptSince.Equal(oldest.at) {
			delete(q.byKey, oldest.key)
		}
	}
}
