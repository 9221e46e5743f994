package register

import "time"

// remembered is what is kept by key until it is over.
type remembered interface {
	over(now time.Time) bool
	bytes() int
}

// sweeping says when what is remembered is worth a look for what is over: after as much was put in
// as was left then, and a little, counted in entries and in bytes. So memory is at most about twice
// what is in use, and a look costs next to nothing for each entry.
type sweeping struct {
	entries, bytes int // left after the last look
	added          int // bytes since then
}

const (
	sweptEntries = 1 << 10
	sweptBytes   = 1 << 20
)

// keep puts something under a key, and forgets what is over where that is due.
func keep[V remembered](s *sweeping, all map[string]V, key string, one V, now time.Time) {
	all[key] = one
	s.added += len(key) + one.bytes()
	if len(all) < 2*s.entries+sweptEntries && s.added < s.bytes+sweptBytes {
		return
	}
	left := 0
	for key, one := range all {
		if one.over(now) {
			delete(all, key)
		} else {
			left += len(key) + one.bytes()
		}
	}
	*s = sweeping{entries: len(all), bytes: left}
}
