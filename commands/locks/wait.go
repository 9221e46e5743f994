package locks

import (
	"context"
	"time"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/command"
	"redlock-proxy/quorum"
)

// lookPause is the time between two checks of a WAIT. A master that missed a change gets it within
// some hundred milliseconds.
const lookPause = 50 * time.Millisecond

// Wait returns the command WAIT of a proxy without an upstream.
func (h *Holders) Wait() *command.Command {
	return command.OfRedis("wait", h.wait, command.DocsOf("generic",
		"Waits until that many masters beyond a majority have the client's changes, and returns how many have them.",
		"3.0.0", command.Integer("numreplicas"), command.Integer("timeout")))
}

// wait implements WAIT numreplicas timeout. A majority of the masters has every change that the
// client got a reply to. WAIT counts the masters beyond that majority, as Redis counts replicas.
func (h *Holders) wait(c command.Call) {
	if refused := waitRefusal(c.Args[1:]); refused != "" {
		c.Out.Error(refused)
		return
	}
	wanted, _ := syntax.Int(c.Args[1])
	timeout, _ := syntax.Int(c.Args[2])
	ctx, stop := c.Client.WaitFor(c.Ctx)
	defer stop()
	over := (<-chan time.Time)(nil) // 0 means no limit
	if timeout > 0 {
		over = time.After(time.Duration(timeout) * time.Millisecond)
	}
	for {
		have, err := h.extraMasters(ctx, c.Client)
		if err != nil {
			c.Out.Fail(err)
			return
		}
		if int64(have) >= wanted {
			c.Client.Touched.Settle()
			c.Out.Int(int64(have))
			return
		}
		select {
		case <-time.After(lookPause):
		case <-over:
			if _, known := c.Client.Touched.Keys(); !known {
				c.Client.Touched.Settle()
			}
			c.Out.Int(int64(have))
			return
		case <-ctx.Done():
			c.Out.Fail(context.Cause(ctx))
			return
		}
	}
}

// extraMasters counts the masters beyond a majority that agree with the majority on each key that
// the client touched. It returns 0 if the keys are not known.
func (h *Holders) extraMasters(ctx context.Context, client *command.Client) (int, error) {
	touched, known := client.Touched.Keys()
	if !known || len(touched) == 0 {
		return 0, nil
	}
	byDB := map[int][]quorum.Key{}
	for _, key := range touched {
		byDB[key.DB] = append(byDB[key.DB], h.opts.Place(key.DB, key.Name))
	}
	agree := map[string]int{} // on how many keys each master agrees with a majority
	masters, have := 0, 0
	for _, keys := range byDB {
		found, err := h.opts.Locks.Holdings(ctx, keys)
		if err != nil {
			return 0, err
		}
		for _, holding := range found {
			masters = len(holding.Shares)
			for _, share := range holding.Shares {
				if share.State == statusNames[holding.Status] {
					agree[share.Server]++
				}
			}
		}
	}
	for _, n := range agree {
		if n == len(touched) {
			have++
		}
	}
	return max(0, have-quorum.Majority(masters)), nil
}

// waitRefusal returns the error for the numbers of a WAIT, of which the last is a time in
// milliseconds; empty if they are valid.
func waitRefusal(numbers [][]byte) string {
	for i, word := range numbers {
		switch n, ok := syntax.Int(word); {
		case i == len(numbers)-1 && !ok:
			return "ERR timeout is not an integer or out of range"
		case !ok:
			return syntax.ErrNotInteger
		case i == len(numbers)-1 && n < 0:
			return "ERR timeout is negative"
		}
	}
	return ""
}
