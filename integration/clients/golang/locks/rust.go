package main

import (
	"context"
)

// The scripts of redlock-rs and rslock.
const (
	redlockRSRelease = `if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) else return 0 end `
	rslockExtend     = `
if redis.call("get", KEYS[1]) ~= ARGV[1] then
    return 0
elseif redis.call("set", KEYS[1], ARGV[1], "PX", ARGV[2]) then
    return 1
end
return 0`
)

// redlockRS connects for each operation, and its tokens are binary.
type redlockRS struct {
	addr  string
	token []byte
}

func (l redlockRS) do(_ context.Context, r request) (any, error) {
	socket, err := dialSocket(l.addr)
	if err != nil {
		return nil, err
	}
	defer socket.close()
	switch r.operation {
	case "take":
		return toPrintable(socket.call("SET", r.key, string(l.token), "nx", "px", r.arguments[0])), nil
	case "release":
		return toPrintable(evaluate(socket.call, redlockRSRelease, r.key, string(l.token))), nil
	}
	return nil, errOperation
}

// rslock sends the commands of redlock-rs, and extends a lock by setting its value again.
type rslock struct{ addr, token string }

func (l rslock) do(ctx context.Context, r request) (any, error) {
	socket, err := dialSocket(l.addr)
	if err != nil {
		return nil, err
	}
	defer socket.close()
	if r.operation == "extend" {
		return toPrintable(evaluate(socket.call, rslockExtend, r.key, l.token, r.arguments[0])), nil
	}
	return redlockRS{l.addr, []byte(l.token)}.do(ctx, r)
}
