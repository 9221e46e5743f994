package main

import (
	"context"
	"fmt"

	"redlock-proxy/internal/redistest"
)

// The scripts of Elixir's redlock. Any reply other than an error means success.
const (
	elixirRelease = `
if redis.call('get', KEYS[1]) == ARGV[1] then
    return redis.call('del', KEYS[1])
else
    return redis.error_reply('NOT LOCKED')
end`
	elixirExtend = `
if redis.call('get', KEYS[1]) == ARGV[1] then
    return redis.call('pexpire', KEYS[1], ARGV[2], 'GT')
else
    return redis.error_reply('NOT LOCKED')
end`
)

// elixir loads its scripts only when it connects.
type elixir struct {
	addr, token string
	socket      *socket
}

func newElixir(addr, token string) *elixir { return &elixir{addr: addr, token: token} }

func (l *elixir) do(_ context.Context, r request) (any, error) {
	if err := l.connect(); err != nil {
		return nil, err
	}
	switch r.operation {
	case "take":
		return toPrintable(l.socket.call("SET", r.key, l.token, "NX", "PX", r.arguments[0])), nil
	case "release":
		return formatElixir(l.socket.call("EVALSHA", scriptSHA(elixirRelease), "1", r.key, l.token)), nil
	case "extend":
		return formatElixir(l.socket.call("EVALSHA", scriptSHA(elixirExtend), "1", r.key, l.token, r.arguments[0])), nil
	}
	return nil, errOperation
}

func (l *elixir) connect() (err error) {
	if l.socket != nil {
		return nil
	}
	if l.socket, err = dialSocket(l.addr); err != nil {
		return err
	}
	l.socket.call("SELECT", "0")
	for _, script := range []string{elixirRelease, elixirExtend} {
		if hash := l.socket.call("SCRIPT", "LOAD", script); hash != scriptSHA(script) {
			return fmt.Errorf("loaded as %v, want %s", hash, scriptSHA(script))
		}
	}
	return nil
}

func formatElixir(reply any) string {
	if failure, ok := reply.(redistest.RespError); ok {
		return "failed: " + string(failure)
	}
	return fmt.Sprint("done: ", toPrintable(reply))
}
