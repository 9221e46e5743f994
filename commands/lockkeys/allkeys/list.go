package allkeys

import (
	"encoding/binary"
	"slices"

	"github.com/tidwall/redcon"

	"redlock-proxy/commands/command"
	"redlock-proxy/internal/resp"
)

// everything matches all keys.
const everything = "*"

// keys is KEYS pattern.
func (a *AllKeys) keys(c command.Call) {
	theirs, ok := c.AskUpstream()
	if !ok {
		return
	}
	held, err := a.Held(c.Ctx, c.Client.DB, string(c.Args[1]))
	if err != nil {
		c.Out.Fail(err)
		return
	}
	if theirs == nil {
		c.Out.Strings(held)
		return
	}
	c.Out.Raw(withElements(theirs, held))
}

// withElements appends bulk strings to an array. Another reply stays as it is.
func withElements(reply []byte, more []string) []byte {
	n, elements, ok := resp.Header(reply)
	if !ok || len(more) == 0 {
		return reply
	}
	out := slices.Concat(resp.AppendHeader(nil, resp.Kind(reply[0]), int64(n+len(more))), elements)
	for _, key := range more {
		out = redcon.AppendBulkString(out, key)
	}
	return out
}

// dbsize is DBSIZE.
func (a *AllKeys) dbsize(c command.Call) {
	theirs, ok := c.AskUpstream()
	if !ok {
		return
	}
	held, err := a.Held(c.Ctx, c.Client.DB, everything)
	if err != nil {
		c.Out.Fail(err)
		return
	}
	n, _, _ := resp.Header(theirs) // 0 where there is no upstream
	c.Out.Int(int64(n + len(held)))
}

// random is one of the first n numbers.
func (a *AllKeys) random(n int) int {
	var bits [8]byte
	a.opts.Random(bits[:])
	return int(binary.NativeEndian.Uint64(bits[:]) % uint64(n))
}
