package main

import (
	"context"
	"strconv"

	"github.com/redis/go-redis/v9"
)

// The scripts of go-zero's lock. The holder can take the lock again.
const (
	goZeroTake = `
if redis.call("GET", KEYS[1]) == ARGV[1] then
    redis.call("SET", KEYS[1], ARGV[1], "PX", ARGV[2])
    return "OK"
end
return redis.call("SET", KEYS[1], ARGV[1], "NX", "PX", ARGV[2])`
	goZeroRelease = `
if redis.call("GET", KEYS[1]) ~= ARGV[1] then
    return 0
end
return redis.call("DEL", KEYS[1])`
)

type goZero struct {
	rdb   *redis.Client
	token string
}

func (l goZero) do(ctx context.Context, r request) (any, error) {
	switch r.operation {
	case "take", "extend":
		ms := strconv.FormatInt(r.duration(0).Milliseconds()+500, 10) // the library's tolerance
		return l.rdb.Eval(ctx, goZeroTake, []string{r.key}, l.token, ms).Result()
	case "release":
		return l.rdb.Eval(ctx, goZeroRelease, []string{r.key}, l.token).Result()
	}
	return nil, errOperation
}
