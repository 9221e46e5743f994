package main

import (
	"context"
	"strconv"
	"time"
)

// rueidisExtend is the script with which rueidislock extends a lease, up to an absolute time.
const rueidisExtend = `
if redis.call("GET", KEYS[1]) == ARGV[1] then
    return redis.call("PEXPIREAT", KEYS[1], ARGV[2])
end
return 0`

// rueidisLock locks as rueidislock does, but with one key instead of several. In the same write as
// each SET, it sends a GET that returns the holder.
type rueidisLock struct {
	socket *socket
	token  string
}

func (l rueidisLock) do(_ context.Context, r request) (any, error) {
	switch r.operation {
	case "take":
		l.socket.mutex.Lock()
		replies := l.socket.send([]string{"SET", r.key, l.token, "NX", "PXAT", expiryMillis(r)}, []string{"GET", r.key})
		l.socket.mutex.Unlock()
		return []any{toPrintable(<-replies[0]), toPrintable(<-replies[1]) == l.token}, nil
	case "release":
		return toPrintable(evaluate(l.socket.call, redlockRSRelease, r.key, l.token)), nil
	case "extend":
		return toPrintable(evaluate(l.socket.call, rueidisExtend, r.key, l.token, expiryMillis(r))), nil
	}
	return nil, errOperation
}

func expiryMillis(r request) string {
	return strconv.FormatInt(time.Now().Add(r.duration(0)).UnixMilli(), 10)
}
