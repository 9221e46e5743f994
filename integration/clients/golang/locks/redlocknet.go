package main

import (
	"context"
	"strconv"
)

// The scripts of RedLock.net. An extension fails if another client holds the lock, and takes the
// lock again if its key has been lost.
const (
	redlockNetRelease = `
if redis.call('get', KEYS[1]) == ARGV[1] then
    return redis.call('del', KEYS[1])
end
return 0`
	redlockNetExtend = `
local holder = redis.call('get', KEYS[1])
if holder == ARGV[1] then
    return redis.call('pexpire', KEYS[1], ARGV[2])
end
if holder then
    return -1
end
return redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2]) and 1 or 0`
)

type redlockNet struct {
	socket *socket
	token  string
}

func (l redlockNet) do(_ context.Context, r request) (any, error) {
	switch r.operation {
	case "take":
		return toPrintable(l.socket.call("SET", r.key, l.token, "PX", r.arguments[0], "NX")), nil
	case "release":
		return toPrintable(evaluate(l.socket.call, redlockNetRelease, r.key, l.token)), nil
	case "extend":
		ms := strconv.FormatInt(r.duration(0).Milliseconds(), 10)
		return toPrintable(evaluate(l.socket.call, redlockNetExtend, r.key, l.token, ms)), nil
	}
	return nil, errOperation
}
