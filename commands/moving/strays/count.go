package strays

import (
	"context"
	"crypto/tls"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"redlock-proxy/commands/catalog/keys"
	"redlock-proxy/quorum/master"
)

// maxCounted is at how many keys of a Redis CountAt looks.
const maxCounted = 100_000

// CountAt returns, by a look through its keys, how many lock keys a Redis holds, and the first that was found. more is set where it has more keys than are
// looked at. It changes nothing there.
func CountAt(ctx context.Context, url string, timeout time.Duration, secure func(*tls.Config), lockKeys []string) (n int, first string, more bool, err error) {
	opts, err := redis.ParseURL(url)
	if err != nil {
		return 0, "", false, err
	}
	master.LockSettings(opts, timeout, secure)
	patterns, left := keys.NewPatterns(lockKeys...), maxCounted
	client := redis.NewClient(opts)
	defer client.Close()
	info, err := client.Info(ctx, "keyspace").Result()
	if err != nil {
		return 0, "", false, err
	}
	for line := range strings.Lines(info) {
		var db int
		if _, err := fmt.Sscanf(line, "db%d:", &db); err != nil {
			continue
		}
		in := *opts
		in.DB = db
		err := scan(ctx, redis.NewClient(&in), &left, func(key string) {
			if !patterns.Match([]byte(key)) {
				return
			}
			if n++; n == 1 {
				first = key
			}
		})
		if err != nil {
			return n, first, false, err
		}
	}
	return n, first, left < 0, nil
}

// scan shows the keys of a database, as long as some are left to be looked at.
func scan(ctx context.Context, client *redis.Client, left *int, see func(key string)) error {
	defer client.Close()
	for cursor := uint64(0); *left >= 0; {
		page, next, err := client.Scan(ctx, cursor, "", 1000).Result()
		if err != nil {
			return err
		}
		for _, key := range page {
			see(key)
		}
		*left -= len(page)
		if cursor = next; cursor == 0 {
			return nil
		}
	}
	return nil
}
