package queue

import "time"

const (
	// emptyQueueTime is the time for which Queues keeps an empty queue, because a client that locks again
	// and again leaves its queue empty each time.
	emptyQueueTime = time.Second
	// maxEmptyQueues limits the number of empty queues.
	maxEmptyQueues = 4096
)

// emptyQueue identifies an empty queue, and holds the time when it was parked.
type emptyQueue[K comparable] struct {
	key K
	at  time.Time
}

// keepEmpty keeps an empty queue for a while, and removes queues that were kept long enough.
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
