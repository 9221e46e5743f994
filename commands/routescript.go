package commands

import (
	"bytes"
	"context"
)

// literals are the texts written in a script, given by its body or, if the proxy
// knows it, by its SHA-1.
func (t *Table) literals(bySHA bool, text string) []string {
	if bySHA {
		if s, ok := t.scripts.Get(lower([]byte(text))); ok {
			return s.Literals()
		}
		return nil
	}
	s, err := t.scripts.Load(text)
	if err != nil {
		return nil // whose error it is, the upstream tells
	}
	return s.Literals()
}

// relayScriptCommand is SCRIPT beside an upstream. Both must know a script, since it
// may be run on keys of either; without the upstream, the proxy goes on alone.
func relayScriptCommand() Command {
	return Command{Name: "script", arity: -2, guarded: true, asks: true, run: (*Table).relayScript}
}

func (t *Table) relayScript(ctx context.Context, c *Client, args [][]byte, out *Reply) {
	own := t.locked["script"]
	reply, err := c.Ask(ctx)
	if err != nil {
		own.run(t, ctx, c, args, out)
		return
	}
	if len(reply) == 0 || reply[0] == '-' {
		out.Raw(reply)
		return
	}
	mine := Reply{Proto: out.Proto}
	switch lower(args[1]) {
	case "load", "flush":
		own.run(t, ctx, c, args, &mine)
	case "exists":
		own.run(t, ctx, c, args, &mine)
		reply = bothKnow(reply, mine.Bytes)
	}
	out.Raw(reply)
}

// bothKnow joins two replies to SCRIPT EXISTS: a script is there if both have it. A
// client that is told otherwise sends it again, and both learn it.
func bothKnow(upstream, own []byte) []byte {
	head, n, ok := header(upstream)
	ownHead, m, ownOK := header(own)
	if !ok || !ownOK || n != m || own[0] != '*' || len(own) != len(upstream) {
		return upstream
	}
	joined := bytes.Clone(upstream)
	for i := range joined[head:] {
		if own[ownHead+i] == '0' {
			joined[head+i] = '0'
		}
	}
	return joined
}
