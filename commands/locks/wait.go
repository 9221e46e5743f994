package locks

import (
	"context"
	"time"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/command"
	"redlock-proxy/quorum"
)

// checkPause is the time between two checks of a WAIT. A master that missed a change gets it within
// a few hundred milliseconds.
const checkPause = 50 * time.Millisecond

// WaitCommand returns the command WAIT of a proxy without an upstream.
func (h *OperatorCommands) WaitCommand() *command.Command {
	return command.NewRedisCommand("wait", h.wait, command.DocsOf("generic",
		"Waits until that many masters beyond a majority have the client's changes, and returns how many have them.",
		"3.0.0", command.Integer("numreplicas"), command.Integer("timeout")))
}

// wait implements WAIT numreplicas timeout. A majority of the masters has every change that the
// client got a reply to. WAIT counts the masters beyond that majority, as Redis counts replicas.
func (h *OperatorCommands) wait(c command.Call) {
	if errText := waitRefusal(c.Args[1:]); errText != "" {
		c.Out.WriteError(errText)
		return
	}
	wanted, _ := syntax.Int(c.Args[1])
	timeout, _ := syntax.Int(c.Args[2])
	ctx, stop := c.Client.WaitContext(c.Ctx)
	defer stop()
	timeoutC := (<-chan time.Time)(nil) // 0 means no limit
	if timeout > 0 {
		timeoutC = time.After(time.Duration(timeout) * time.Millisecond)
	}
	for {
		extra, err := h.extraMasters(ctx, c.Client)
		if err != nil {
			c.Out.Fail(err)
			return
		}
		if int64(extra) >= wanted {
			c.Client.ChangedKeys.StartNewSet()
			c.Out.WriteInt(int64(extra))
			return
		}
		select {
		case <-time.After(checkPause):
		case <-timeoutC:
			if _, known := c.Client.ChangedKeys.Keys(); !known {
				c.Client.ChangedKeys.StartNewSet()
			}
			c.Out.WriteInt(int64(extra))
			return
		case <-ctx.Done():
			c.Out.Fail(context.Cause(ctx))
			return
		}
	}
}

// extraMasters counts the masters beyond a majority that agree with the majority on each key that
// the client may have changed. It returns 0 if there is no such key, or if the client has changed
// more keys than the proxy records.
func (h *OperatorCommands) extraMasters(ctx context.Context, client *command.Client) (int, error) {
	touchedKeys, known := client.ChangedKeys.Keys()
	if !known || len(touchedKeys) == 0 {
		return 0, nil
	}
	byDB := map[int][]quorum.Key{}
	for _, key := range touchedKeys {
		byDB[key.DB] = append(byDB[key.DB], h.opts.KeyOnMasters(key.DB, key.Name))
	}
	agreements := map[string]int{} // number of keys on which each master agrees with a majority
	masters, extra := 0, 0
	for _, keys := range byDB {
		holdings, err := h.opts.Locks.Holdings(ctx, keys)
		if err != nil {
			return 0, err
		}
		for _, holding := range holdings {
			masters = len(holding.Masters)
			for _, share := range holding.Masters {
				if share.State == statusNames[holding.Status] {
					agreements[share.Server]++
				}
			}
		}
	}
	for _, n := range agreements {
		if n == len(touchedKeys) {
			extra++
		}
	}
	return max(0, extra-quorum.Majority(masters)), nil
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
