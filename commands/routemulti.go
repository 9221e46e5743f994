package commands

import (
	"context"
	"fmt"
)

// multiState is a client's transaction on lock keys, which the proxy carries out
// itself.
type multiState struct {
	tx      *Transaction // nil: in none
	aborted bool         // a command was refused: EXEC will be
	down    string       // why the upstream cannot be reached, where that began it
}

// InMulti reports whether the client is in a transaction of the proxy's own.
func (c *Client) InMulti() bool { return c.multi.tx != nil }

// NoUpstreamInMulti tells a transaction, if there is one, that it is the proxy's own
// for this error of the upstream's, which commands on other keys then get.
func (c *Client) NoUpstreamInMulti(text string) { c.multi.down = text }

// BeginMulti takes the client into one.
func (c *Client) BeginMulti() { c.multi = multiState{tx: new(Transaction)} }

// EndMulti takes it out, and ends the watch on its keys.
func (c *Client) EndMulti() {
	c.multi = multiState{}
	c.Unwatch()
}

// AbortMulti has EXEC be refused.
func (c *Client) AbortMulti() { c.multi.aborted = true }

// multi finds a command of transactions on lock keys by its name in lower case; nil
// where it is none of them, or no lock keys are configured.
func (t *Table) multi(name string) *Command {
	if !t.lockKeys.Any() {
		return nil
	}
	for i := range multiCommands {
		if multiCommands[i].Name == name {
			return &multiCommands[i]
		}
	}
	return nil
}

// OwnMulti is the MULTI that begins a transaction of the proxy's own.
func (t *Table) OwnMulti() *Command { return t.multi("multi") }

// OwnUnwatch is the UNWATCH of lock keys.
func (t *Table) OwnUnwatch() *Command { return t.multi("unwatch") }

// multiCommands are never changed. They count their words themselves, since a wrong
// number aborts a transaction.
var multiCommands = []Command{
	{Name: "multi", arity: -1, guarded: true, run: (*Table).cmdMulti},
	{Name: "exec", arity: -1, guarded: true, run: (*Table).cmdExec},
	{Name: "discard", arity: -1, guarded: true, run: (*Table).cmdDiscard},
	{Name: "watch", arity: -1, guarded: true, run: (*Table).cmdWatch},
	{Name: "unwatch", arity: -1, guarded: true, run: (*Table).cmdUnwatch},
}

// WatchCommand finds what runs a WATCH: one that watches lock keys, or one that
// refuses keys of both kinds. It is nil where it is for the upstream.
func (t *Table) WatchCommand(c *Client, words [][]byte) *Command {
	places, _ := keyRule(words[0]).Places(words, len(words))
	switch lock, other := t.sortOut(words, places); {
	case lock < 0 && other >= 0 && c.Watching():
		return MixedWatch()
	case lock < 0:
		return nil
	case other >= 0:
		return refusing("watch", mixed("watch", words[lock], words[other]))
	}
	return t.multi("watch")
}

// MixedWatch refuses a WATCH of a client that watches keys of the other kind: a
// transaction can only be held by one of both.
func MixedWatch() *Command {
	return refusing("watch", "ERR 'watch' of lock keys and others: the ones stand on the lock masters, the others on the upstream; watch one kind at a time")
}

// MultiCommand finds what runs a command of a client that is in a transaction of the
// proxy's own. It is nil for QUIT and RESET, which are as ever.
func (t *Table) MultiCommand(c *Client, words [][]byte) *Command {
	name := lower(words[0])
	switch name {
	case "quit", "reset":
		return nil
	case "multi", "exec", "discard", "watch":
		return t.multi(name)
	}
	cmd, why := t.lockCommand(words)
	switch {
	case why != "":
	case cmd != nil:
		return &Command{Name: name, arity: -1, guarded: true, run: (*Table).queue}
	default:
		why = t.notQueued(c, words)
	}
	return aborting(name, why)
}

// queue adds a command to the transaction.
func (t *Table) queue(_ context.Context, c *Client, words [][]byte, out *Reply) {
	at := len(out.Bytes)
	t.Queue(c, c.multi.tx, words, out)
	if at < len(out.Bytes) && out.Bytes[at] == '-' {
		c.AbortMulti()
	}
}

// notQueued says why a command has no place in a transaction on lock keys.
func (t *Table) notQueued(c *Client, words [][]byte) string {
	name := shown(words[0])
	if cmd := t.Lookup(words[0]); cmd != nil && cmd.isOurs() {
		return "ERR Command not allowed inside a transaction"
	}
	if c.multi.down != "" {
		return c.multi.down
	}
	if rule := t.Keyed(words[0]); rule != nil {
		places, _ := rule.Places(words, len(words))
		if _, other := t.sortOut(words, places); other >= 0 {
			return fmt.Sprintf("ERR '%s' in a transaction on lock keys: '%s' stands on the upstream; send two transactions", name, shown(words[other]))
		}
	}
	return fmt.Sprintf("ERR '%s' in a transaction on lock keys: only commands on lock keys can be part of it", name)
}

// aborting is a command that refuses, and with it the transaction.
func aborting(name, text string) *Command {
	return &Command{Name: name, arity: -1, guarded: true, run: func(_ *Table, _ context.Context, c *Client, _ [][]byte, out *Reply) {
		c.AbortMulti()
		out.Error(text)
	}}
}

// LateInMulti is the error for a command on lock keys behind others in a transaction
// of the upstream's.
func LateInMulti(cmd *Command) string {
	return fmt.Sprintf("ERR '%s' on a lock key in a transaction on other keys: lock keys stand on the lock masters; send two transactions", cmd.Name)
}

// counted checks a number of words; a wrong one aborts the transaction.
func (c *Client) counted(fits bool, name string, out *Reply) bool {
	if !fits {
		c.AbortMulti()
		out.Error(wrongArity(name))
	}
	return fits
}

func (t *Table) cmdMulti(_ context.Context, c *Client, words [][]byte, out *Reply) {
	switch {
	case !c.counted(len(words) == 1, "multi", out):
	case c.InMulti():
		out.Error("ERR MULTI calls can not be nested")
	default:
		c.BeginMulti()
		out.Status("OK")
	}
}

func (t *Table) cmdExec(ctx context.Context, c *Client, words [][]byte, out *Reply) {
	multi := c.multi
	switch {
	case len(words) != 1:
		out.Error("EXECABORT Transaction discarded because of: wrong number of arguments for 'exec' command")
	case multi.tx == nil:
		out.Error("ERR EXEC without MULTI")
		return
	case multi.aborted:
		out.Error("EXECABORT Transaction discarded because of previous errors.")
	default:
		t.Exec(ctx, c, multi.tx, out)
	}
	c.EndMulti()
}

func (t *Table) cmdDiscard(_ context.Context, c *Client, words [][]byte, out *Reply) {
	switch {
	case !c.counted(len(words) == 1, "discard", out):
	case !c.InMulti():
		out.Error("ERR DISCARD without MULTI")
	default:
		c.EndMulti()
		out.Status("OK")
	}
}

func (t *Table) cmdWatch(ctx context.Context, c *Client, words [][]byte, out *Reply) {
	switch {
	case !c.counted(len(words) > 1, "watch", out):
	case c.InMulti():
		out.Error("ERR WATCH inside MULTI is not allowed")
	default:
		t.Watch(ctx, c, words[1:], out)
	}
}

func (t *Table) cmdUnwatch(_ context.Context, c *Client, words [][]byte, out *Reply) {
	if c.counted(len(words) == 1, "unwatch", out) {
		c.Unwatch()
		out.Status("OK")
	}
}
