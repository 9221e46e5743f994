package keepalive

import "container/heap"

// queue orders kept locks by the time of their next renewal or check. It implements heap.Interface.
type queue []*Lock

// Len implements heap.Interface.
func (q queue) Len() int { return len(q) }

// Less implements heap.Interface.
func (q queue) Less(i, j int) bool { return q[i].at.Before(q[j].at) }

// Swap implements heap.Interface.
func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}

// Push implements heap.Interface.
func (q *queue) Push(x any) {
	l := x.(*Lock)
	l.index = len(*q)
	*q = append(*q, l)
}

// Pop implements heap.Interface.
func (q *queue) Pop() any {
	last := len(*q) - 1
	l := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	l.index = notQueued
	return l
}

// notQueued is the index of a lock that is not in the queue.
const notQueued = -1

func (q *queue) add(l *Lock) { heap.Push(q, l) }

// remove removes a lock, if it is queued.
func (q *queue) remove(l *Lock) {
	if l.index != notQueued {
		heap.Remove(q, l.index)
	}
}
