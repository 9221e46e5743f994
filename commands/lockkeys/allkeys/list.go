package allkeys

import (
	"encoding/binary"
	"slices"

	"github.com/tidwall/redcon"

	"redlock-proxy/commands/command"
	"redlock-proxy/internal/resp"
)

// matchAll matches all keys.
const matchAll = "*"

// keys runs KEYS pattern.
func (a *AllKeys) keys(c command.Call) {
	upstreamReply, ok := c.AskUpstream()
	if !ok {
		return
	}
	lockKeys, err := a.List(c.Ctx, c.Client.DB, string(c.Args[1]))
	lockKeys = c.Client.ListedKeys(lockKeys)
	if err != nil {
		c.Out.Fail(err)
		return
	}
	if upstreamReply == nil {
		c.Out.WriteStrings(lockKeys)
		return
	}
	c.Out.WriteRaw(withElements(upstreamReply, lockKeys))
}

// withElements appends bulk strings to an array. It returns any other reply unchanged.
func withElements(reply []byte, newElements []string) []byte {
	n, elements, ok := resp.Header(reply)
	if !ok || len(newElements) == 0 {
		return reply
	}
	out := slices.Concat(resp.AppendHeader(nil, resp.Kind(reply[0]), int64(n+len(newElements))), elements)
	for _, key := range newElements {
		out = redcon.AppendBulkString(out, key)
	}
	return out
}

func (a *AllKeys) dbsize(c command.Call) {
	upstreamReply, ok := c.AskUpstream()
	if !ok {
		return
	}
	lockKeys, err := a.List(c.Ctx, c.Client.DB, matchAll)
	lockKeys = c.Client.ListedKeys(lockKeys)
	if err != nil {
		c.Out.Fail(err)
		return
	}
	n, _, _ := resp.Header(upstreamReply) // 0 without an upstream
	c.Out.WriteInt(int64(n + len(lockKeys)))
}

// random returns a random number from 0 to n-1.
func (a *AllKeys) random(n int) int {
	var bits [8]byte
	a.opts.Random(bits[:])
	return int(binary.NativeEndian.Uint64(bits[:]) % uint64(n))
}
