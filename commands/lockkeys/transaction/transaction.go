// Package transaction runs MULTI, WATCH and EXEC on lock keys. [command.Transaction] holds the
// state of a client's transaction.
package transaction

import (
	"context"
	"fmt"

	"redlock-proxy/commands/catalog/spec"
	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/command"
	"redlock-proxy/commands/lockkeys"
	"redlock-proxy/commands/lockkeys/eval"
	"redlock-proxy/commands/lockkeys/keyspace"
	"redlock-proxy/commands/lockkeys/program"
	"redlock-proxy/commands/lockkeys/script"
	"redlock-proxy/commands/rights"
)

// Transactions runs transactions on lock keys. It is safe for concurrent use.
type Transactions struct {
	Runner  *lockkeys.Runner
	Scripts *eval.Scripts
}

// Commands returns the commands of transactions, by name. Each command checks its own number of
// words, because a wrong number aborts a transaction.
func (t Transactions) Commands() map[string]*command.Command {
	all := map[string]*command.Command{}
	for name, run := range map[string]func(command.Call){
		"multi": multi, "exec": t.exec, "discard": discard, "watch": t.watch, "unwatch": unwatch,
	} {
		all[name] = &command.Command{Name: name, Arity: -1, RequiresLogin: true, Run: run}
	}
	return all
}

// checkArity aborts the transaction, and replies with an error, if fits is false: the number of
// words is wrong. It returns fits.
func checkArity(fits bool, name string, c command.Call) bool {
	if !fits {
		c.Client.Transaction.Abort()
		c.Out.WriteError(syntax.WrongArity(name))
	}
	return fits
}

func multi(c command.Call) {
	switch {
	case !checkArity(len(c.Args) == 1, "multi", c):
	case c.Client.Transaction.Open:
		c.Out.WriteError("ERR MULTI calls can not be nested")
	default:
		c.Client.Transaction.Begin()
		c.Out.WriteStatus("OK")
	}
}

func discard(c command.Call) {
	switch {
	case !checkArity(len(c.Args) == 1, "discard", c):
	case !c.Client.Transaction.Open:
		c.Out.WriteError("ERR DISCARD without MULTI")
	default:
		c.Client.Transaction.End()
		c.Out.WriteStatus("OK")
	}
}

func unwatch(c command.Call) {
	if checkArity(len(c.Args) == 1, "unwatch", c) {
		c.Client.Transaction.Unwatch()
		c.Out.WriteStatus("OK")
	}
}

// watch runs WATCH on lock keys: it keeps their versions, and EXEC fails if a version has changed.
// There are two differences from Redis. A change of only the remaining time does not count. A key
// that was absent, existed, and is absent again counts as unchanged, unless the client found it
// meanwhile.
func (t Transactions) watch(c command.Call) {
	tx, db := &c.Client.Transaction, c.Client.DB
	switch {
	case !checkArity(len(c.Args) > 1, "watch", c):
		return
	case tx.Open:
		c.Out.WriteError("ERR WATCH inside MULTI is not allowed")
		return
	case tx.HasWatchedKeys() && tx.Watched.DB != db:
		c.Out.WriteError(fmt.Sprintf(
			"ERR WATCH cannot watch lock keys in two databases: lock keys of database %d are already watched; "+
				"send UNWATCH first",
			tx.Watched.DB))
		return
	}
	names := syntax.Distinct(syntax.Strings(c.Args[1:]))
	if refusal := program.TooManyKeys(len(names) + len(tx.Watched.Keys)); refusal != "" {
		c.Out.WriteError(refusal)
		return
	}
	snapshots, err := t.Runner.Engine.Register.Read(c.Ctx, t.Runner.Engine.KeysOnMasters(db, names))
	if err != nil {
		c.Out.Fail(err)
		return
	}
	if !tx.HasWatchedKeys() {
		tx.Watched = command.WatchedKeys{DB: db, Keys: map[string]string{}}
	}
	for i, key := range names {
		tx.Watched.Watch(key, snapshots[i].Version)
	}
	c.Out.WriteStatus("OK")
}

// maxQueuedBytes limits the memory of a transaction's commands.
const maxQueuedBytes = 1 << 20

// sizeOf returns the memory of a queued command: its bytes, and the headers of the command (24
// bytes) and of each word (16 bytes).
func sizeOf(words [][]byte) int {
	size := 24 + 16*len(words)
	for _, w := range words {
		size += len(w)
	}
	return size
}

// Queue adds a command on lock keys to a transaction and replies QUEUED. After an error, EXEC
// replies EXECABORT.
func (t Transactions) Queue(c command.Call) {
	tx := &c.Client.Transaction
	if errText := queueError(tx, c.Client.DB, c.Args); errText != "" {
		tx.Abort()
		c.Out.WriteError(errText)
		return
	}
	tx.QueuedCommands = append(tx.QueuedCommands, syntax.Strings(c.Args))
	tx.QueuedBytes += sizeOf(c.Args)
	c.Out.WriteStatus("QUEUED")
}

func queueError(tx *command.Transaction, db int, words [][]byte) string {
	name := syntax.Lower(words[0])
	switch {
	case tx.QueuedBytes > maxQueuedBytes:
		return fmt.Sprintf("ERR transaction too large: a transaction on lock keys is limited to %d bytes", maxQueuedBytes)
	case (IsConnectionCommand(name) || syntax.IsPublish(name)) && !syntax.FitsArity(spec.Find(words[0]).Arity, len(words)):
		return syntax.WrongArity(name)
	case name == "select":
		if _, otherDB := eval.Select(db, string(words[1])); otherDB {
			return fmt.Sprintf("ERR SELECT of database %s cannot be part of this transaction: "+
				"its lock keys are in database %d; send it before MULTI or after EXEC", syntax.Excerpt(words[1]), db)
		}
		return ""
	case IsConnectionCommand(name), syntax.IsPublish(name):
		return ""
	case keyspace.IsSupported(name) && !keyspace.Fits(name, len(words)), syntax.IsEval(name) && len(words) < 3:
		return syntax.WrongArity(name)
	case !keyspace.IsSupported(name) && !syntax.IsEval(name):
		return fmt.Sprintf("ERR '%s' cannot be part of a transaction on lock keys: it is not a command on lock keys; "+
			"send it before MULTI or after EXEC", syntax.Excerpt(words[0]))
	}
	return ""
}

// IsConnectionCommand reports whether a command is PING, SELECT or UNWATCH. These commands have no
// keys, but can be part of a transaction on lock keys.
func IsConnectionCommand(name string) bool {
	return name == "ping" || name == "select" || name == "unwatch"
}

// connectionProgram returns the program that runs a connection command (see IsConnectionCommand).
func connectionProgram(db int, words []string) program.Program {
	reply := keyspace.OK() // UNWATCH: the program has already compared the watched versions
	switch syntax.Lower(words[0]) {
	case "ping":
		reply = eval.Pong(words)
	case "select":
		reply, _ = eval.Select(db, words[1])
	}
	return program.FixedReply(db, reply)
}

// exec runs EXEC: it makes all queued changes atomically, if the watched keys have not changed.
// EXEC ends the watch of all keys, except an EXEC without MULTI.
func (t Transactions) exec(c command.Call) {
	tx := c.Client.Transaction
	if len(c.Args) == 1 && !tx.Open {
		c.Out.WriteError("ERR EXEC without MULTI")
		return
	}
	c.Client.Transaction.End()
	switch w := tx.Watched; {
	case len(c.Args) != 1:
		c.Out.WriteError("EXECABORT Transaction discarded because of: wrong number of arguments for 'exec' command")
	case tx.Aborted:
		c.Out.WriteError("EXECABORT Transaction discarded because of previous errors.")
	case len(w.Keys) > 0 && w.DB != c.Client.DB:
		c.Out.WriteError("EXECABORT Transaction discarded because of: the watched lock keys are in a different database; " +
			"send WATCH and EXEC in the same database")
	case w.Changed:
		c.Out.WriteNullArray()
	default:
		t.run(c, tx)
	}
}

// run runs the queued commands as one program. The scripts of a transaction share an allowance.
func (t Transactions) run(c command.Call, tx command.Transaction) {
	permissions := c.Client.Rights()
	parts, allowance := make([]program.Program, len(tx.QueuedCommands)), &script.Allowance{}
	for i, words := range tx.QueuedCommands {
		if refusal := c.Client.Refusal(c.Ctx, syntax.Bytes(words)); refusal != "" {
			c.Out.WriteError("EXECABORT Transaction discarded because of: " + refusal)
			return
		}
		part, err := t.part(c.Ctx, c.Client, permissions, words, allowance)
		if err != nil {
			c.Out.Fail(err)
			return
		}
		parts[i] = part
	}
	t.Runner.RunProgram(c, program.Sequence(c.Client.DB, permissions, tx.Watched.Keys, parts))
}

// part returns the program that runs a queued command.
func (t Transactions) part(
	ctx context.Context, client *command.Client, permissions *rights.Permissions, words []string,
	allowance *script.Allowance,
) (program.Program, error) {
	if IsConnectionCommand(syntax.Lower(words[0])) {
		return connectionProgram(client.DB, words), nil
	}
	if syntax.IsPublish(syntax.Lower(words[0])) {
		// The upstream publishes the message after the commit, so the proxy does not know the
		// number of receivers yet.
		return program.FixedReply(client.DB, keyspace.IntReply(1), words), nil
	}
	if !syntax.IsEval(syntax.Lower(words[0])) {
		return t.Runner.Program(client, words), nil
	}
	part, errText, err := t.Scripts.Program(ctx, client, permissions, words, allowance)
	if errText != "" {
		return program.FixedReply(client.DB, keyspace.ErrorReply(errText)), nil
	}
	return part, err
}
