package strays

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"redlock-proxy/internal/pacing"
	"redlock-proxy/internal/redisinfo"
	"redlock-proxy/internal/resp"
	"redlock-proxy/quorum/feed"
)

const (
	// lookPause is the wait between two looks through the upstream.
	lookPause = 4 * time.Second
	// maxLooked is up to how many keys it is looked through.
	maxLooked = 10_000
	// maxDatabases is up to how many databases.
	maxDatabases = 16
)

// lookThrough looks through the upstream again and again, as long as it has few keys, until the connection ends.
func (l *link) lookThrough(ctx context.Context) error {
	var before map[string]struct{}
	for {
		databases, many, err := l.databases()
		if err != nil {
			return err
		}
		if many > maxLooked {
			l.set(Impossible)
			l.cannot("lock keys at the upstream are not watched for: it does not report changes, and has too many keys to be looked through, or does not say how many", nil)
		} else {
			now, err := l.scan(databases, maxLooked)
			if err != nil {
				return err
			}
			l.set(Looking)
			var names []string
			for name := range now {
				if _, known := before[name]; !known {
					names = append(names, name)
				}
			}
			slices.Sort(names)
			l.found(names, l.who)
			before = now
		}
		if err := pacing.Sleep(ctx, lookPause); err != nil {
			return err
		}
	}
}

// databases are those that are not empty, and how many keys they have together. Where that is not known it is the first one alone, and nobody knows.
func (l *link) databases() (all []int, keys int, err error) {
	replies, err := l.ask([]string{"INFO", "keyspace"})
	if err != nil {
		return nil, 0, err
	}
	text, is := replies[0].(string)
	if !is {
		return []int{0}, maxLooked + 1, nil
	}
	info := redisinfo.Parse(text)
	all = info.Databases()
	for _, db := range all[:min(len(all), maxDatabases)] { // keys=1,expires=0,…
		count, _, _ := strings.Cut(strings.TrimPrefix(info["db"+strconv.Itoa(db)], "keys="), ",")
		n, _ := strconv.Atoi(count)
		keys += n
	}
	return all[:min(len(all), maxDatabases)], keys, nil
}

// scan are the lock keys of these databases, among so many keys. The error is the upstream's refusal, or that the connection has ended.
func (l *link) scan(databases []int, most int) (map[string]struct{}, error) {
	found := map[string]struct{}{}
	for _, db := range databases {
		for cursor := "0"; most > 0; {
			replies, err := l.ask([]string{"SELECT", strconv.Itoa(db)}, []string{"SCAN", cursor, "COUNT", "1000"})
			if err != nil {
				return nil, err
			}
			if refused, is := replies[1].(resp.Error); is {
				return nil, refused
			}
			page, _ := replies[1].([]any)
			if len(page) != 2 {
				return nil, feed.ErrAnswer
			}
			names, _ := page[1].([]any)
			most -= len(names)
			for _, one := range names {
				if name, is := one.(string); is && l.isLock(name) {
					found[name] = struct{}{}
				}
			}
			if cursor, _ = page[0].(string); cursor == "0" || cursor == "" {
				break
			}
		}
	}
	return found, nil
}
