package commands

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"redlock-proxy/commands/catalog/keys"
	"redlock-proxy/commands/catalog/spec"
	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/command"
	"redlock-proxy/commands/lockkeys"
	"redlock-proxy/commands/lockkeys/eval"
	"redlock-proxy/commands/lockkeys/transaction"
)

// Verb is what becomes of a command.
type Verb uint8

// What may become of a command. With Settle, Connect and TakeOver the question is put again.
const (
	Forward  Verb = iota // it is for the upstream, as it came
	Settle               // the upstream must have answered all that was sent before
	Connect              // it must be known whether there is a connection to the upstream
	TakeOver             // the upstream's empty transaction becomes one of the proxy's own
	Learn                // it must be learned what it does: see Table.Learn
	Run                  // it is answered here
	Refuse               // the same, with an error
	Abort                // the same, which aborts the proxy's own transaction
	Spoil                // an error, and the upstream is to refuse the EXEC of its transaction
	NoScript             // the upstream is to answer that there is no such script, when it carries out its transaction
	Quit                 // the client is leaving
	Close                // there is no telling what state the client is in, nor a place for an answer
)

// Decision is what becomes of a command.
type Decision struct {
	Verb Verb
	// Command answers it, with Learn, Run, Refuse and Abort.
	Command *command.Command
	// Text is the error, with Refuse, Abort and Spoil.
	Text string
}

// Situation is what a decision depends on besides the words. The zero value is that of a client
// that has done nothing yet.
type Situation struct {
	// InMulti is set in a transaction of the proxy's own, Watching while lock keys are watched.
	InMulti, Watching bool
	// Down is why the upstream cannot be reached, as an error; empty where it can, or that is not
	// known.
	Down string
	// Connected is set when it was tried to reach it for this command.
	Connected bool
	// Upstream is the client's connection there.
	Upstream Connection
	// TooLong is set for a command that is too long to be held and would have to be. Its first
	// words are given.
	TooLong bool
}

// Connection is what is known of a client's connection to the upstream.
type Connection struct {
	// Settled is set when the upstream has answered all that was sent; else nothing is known.
	Settled bool
	// Quitting, Stream: its end was asked for; the rest is bytes that are no replies.
	Quitting, Stream bool
	// Multi is set in a transaction, Queued where something was sent in it.
	Multi, Queued bool
	// Watching is set while keys are watched there.
	Watching bool
	// Restricted: it takes messages, and hardly a command, unless it has changed to RESP3 (Unsure).
	// Monitoring: it takes what others do.
	Restricted, Unsure, Monitoring bool
	// Silent is set where the client wants no answers.
	Silent bool
}

// router decides what becomes of a command. Its decisions depend on nothing but the situation, the
// words, and which scripts and functions are known. It is safe for concurrent use.
type router struct {
	lockKeys keys.Patterns
	// relays is set where there is an upstream, messages where the proxies carry messages.
	relays, messages bool
	// own are the proxy's own commands, locked those that run on lock keys, multi those of
	// transactions.
	own           *syntax.Names[*command.Command]
	locked, multi map[string]*command.Command
	scripts       *eval.Scripts
	// queue adds a command to a transaction.
	queue func(command.Call)
}

// route decides.
func (r *router) route(at Situation, words [][]byte) Decision {
	own := r.own.Find(words[0])
	if own != nil && !at.TooLong && !at.InMulti { // what is asked most needs no name
		return r.runs(own, at, words)
	}
	name := syntax.Lower(words[0])
	switch {
	case at.TooLong:
		return refuse(name, r.tooLong(name, words))
	case at.InMulti && name != "quit" && name != "reset":
		return r.settled(at, name, r.inMulti(at, name, words))
	case own != nil:
		return r.runs(own, at, words)
	case !r.lockKeys.Any():
		return r.forUpstream(name, words)
	}
	switch name {
	case "multi":
		return r.begins(at)
	case "watch":
		return r.watches(at, words)
	case "unwatch":
		if at.Watching {
			return r.settled(at, name, Decision{Verb: Run, Command: r.multi[name]})
		}
		return Decision{}
	}
	return r.settled(at, name, r.byKeys(name, words))
}

// runs is the decision about a command of the proxy's own.
func (r *router) runs(own *command.Command, at Situation, words [][]byte) Decision {
	if r.relays {
		return relayed(own, at.Upstream, words)
	}
	return Decision{Verb: Run, Command: own}
}

// settled is the decision about a command that is for the lock masters, when its turn has come.
func (r *router) settled(at Situation, name string, d Decision) Decision {
	u := at.Upstream
	switch {
	case !r.relays || d.Verb == Forward:
		return d
	case !u.Settled:
		return Decision{Verb: Settle}
	case u.Stream && !u.Quitting: // it may be in a transaction there that nobody knows of
		return Decision{Verb: Close}
	case d.Verb == Learn && (u.Restricted && !u.Unsure || u.Quitting):
		return Decision{} // it is refused there, whatever it is
	case d.Verb == Learn:
		return d
	case u.Quitting:
		return Decision{Verb: Quit}
	case u.Multi && d.Verb == NoScript:
		return d
	case d.Verb == NoScript:
		return refuse(name, syntax.NoScript)
	case u.Multi && name == "watch":
		return Decision{} // which the upstream refuses
	case u.Multi && !u.Queued && !u.Watching:
		return Decision{Verb: TakeOver}
	case u.Multi:
		return Decision{Verb: Spoil, Text: lateInMulti(name)}
	case u.Watching && name == "watch":
		return refuse(name, mixedWatch)
	}
	return d
}

// relayed is the decision about a command of the proxy's own where there is an upstream: that must
// see it in a transaction, in a stream that cannot be followed, and where a command that asks the
// upstream would not be answered.
func relayed(own *command.Command, u Connection, words [][]byte) Decision {
	switch {
	case !u.Settled:
		return Decision{Verb: Settle}
	case u.Quitting:
		return Decision{Verb: Quit}
	case u.Stream && (own.Local || own.IsOurs()):
		return Decision{Verb: Close}
	case u.Multi && !u.Stream && (own.IsOurs() || own.Local || own.Aloud || own.HidesIn(words)):
		return Decision{Verb: Spoil, Text: notInMulti(own)}
	case u.Multi || u.Stream || own.Asks && (u.Silent && !own.Aloud || u.Restricted || u.Monitoring):
		return Decision{}
	}
	return Decision{Verb: Run, Command: own}
}

// begins is the decision about MULTI: the transaction is the upstream's, unless that cannot be
// reached or lock keys are watched. For then a lock must still be released by one.
func (r *router) begins(at Situation) Decision {
	own := Decision{Verb: Run, Command: r.multi["multi"]}
	switch {
	case at.Watching, at.Connected && at.Down != "":
		return r.settled(at, "multi", own)
	case !at.Connected:
		return Decision{Verb: Connect}
	}
	return Decision{}
}

// watches is the decision about WATCH, which a transaction can only be held by for keys of one
// kind.
func (r *router) watches(at Situation, words [][]byte) Decision {
	places, _ := spec.KeysOf(words[0]).Places(words, len(words))
	switch lock, other := r.lockKeys.Split(words, places); {
	case lock < 0 && other >= 0 && at.Watching:
		return r.settled(at, "watch", refuse("watch", mixedWatch))
	case lock < 0:
		return r.forUpstream("watch", words)
	case other >= 0:
		return r.settled(at, "watch", refuse("watch", lockkeys.Mixed("watch", words[lock], words[other])))
	}
	return r.settled(at, "watch", Decision{Verb: Run, Command: r.multi["watch"]})
}

// inMulti is the decision about a command in a transaction of the proxy's own.
func (r *router) inMulti(at Situation, name string, words [][]byte) Decision {
	switch {
	case name == "multi", name == "exec", name == "discard", name == "watch":
		return Decision{Verb: Run, Command: r.multi[name]}
	case transaction.IsOfConnection(name) && at.Down == "", r.messages && syntax.IsPublish(name):
		return Decision{Verb: Run, Command: &command.Command{Name: name, Arity: -1, Guarded: true, Run: r.queue}}
	}
	switch d := r.onMasters(name, words); d.Verb {
	case Forward:
		return abort(name, r.notQueued(at, words))
	case Refuse:
		return abort(name, d.Text)
	}
	return Decision{Verb: Run, Command: &command.Command{Name: name, Arity: -1, Guarded: true, Run: r.queue}}
}

// byKeys is the decision about a command by its keys, in no transaction.
func (r *router) byKeys(name string, words [][]byte) Decision {
	d := r.onMasters(name, words)
	if d.Verb == Forward {
		return r.forUpstream(name, words)
	}
	return d
}

// forUpstream is the decision about a command that is not for the lock masters.
func (r *router) forUpstream(name string, words [][]byte) Decision {
	switch {
	case r.relays:
		return Decision{}
	case len(words) == 1:
		return refuse(name, syntax.WrongArity(name))
	}
	return refuse(name, r.noUpstream(name, words))
}

// onMasters is the decision about a command that may name a lock key, as if nothing had come before
// it.
func (r *router) onMasters(name string, words [][]byte) Decision {
	rule := r.rule(words[0])
	if rule == nil {
		return Decision{}
	}
	if hasNUL(words[0]) {
		return refuse(name, syntax.UnknownCommand(words))
	}
	places, _ := rule.Places(words, len(words))
	lock, other := r.lockKeys.Split(words, places)
	cmd := r.locked[name]
	switch {
	case lock < 0 && (syntax.IsEval(name) || eval.IsFunction(name)):
		at, refusal := r.scripts.Route(name, words)
		return r.placed(name, at, refusal)
	case lock < 0:
		return Decision{}
	case cmd == nil:
		return refuse(name, lockkeys.Unfit(name, words[lock]))
	case other >= 0 && !syntax.IsEval(name):
		return refuse(name, lockkeys.Mixed(name, words[lock], words[other]))
	}
	return Decision{Verb: Run, Command: cmd}
}

// hasNUL reports whether a name ends earlier for Redis than for us.
func hasNUL(name []byte) bool { return bytes.IndexByte(name, 0) >= 0 }

// rule gives the rule of a command that has keys, or, for the upstream, may have; nil for any other
// one, and for all where no lock keys are configured.
func (r *router) rule(name []byte) *keys.Rule {
	if !r.lockKeys.Any() {
		return nil
	}
	if rule := spec.KeysOf(name); rule != nil || !r.relays || r.own.Find(name) != nil || !hasNUL(name) && spec.Keyless(name) {
		return rule
	}
	return keys.AnyWord
}

// mustLearn is the decision about a command whose meaning must be learned first. Its Command does
// so, where there is no upstream.
func (r *router) mustLearn(name string) Decision {
	return Decision{Verb: Learn, Command: &command.Command{Name: name, Arity: -1, Guarded: true, Run: func(c command.Call) {
		switch d := r.learned(c.Ctx, c.Args); d.Verb {
		case Forward:
			c.Out.Error(r.noUpstream(name, c.Args))
		case NoScript:
			c.Out.Error(syntax.NoScript)
		default:
			d.Command.Run(c)
		}
	}}}
}

// learned finds out, where the masters and the upstream keep it, what a command does of which that
// could not be told, and decides.
func (r *router) learned(ctx context.Context, words [][]byte) Decision {
	name := syntax.Lower(words[0])
	at, refusal := r.scripts.Learn(ctx, name, words)
	d := r.placed(name, at, refusal)
	if d.Verb == Learn {
		return Decision{Verb: NoScript}
	}
	return d
}

// placed is the decision about a script or function, by where it is carried out.
func (r *router) placed(name string, at eval.Where, refusal string) Decision {
	switch at {
	case eval.Here:
		return Decision{Verb: Run, Command: r.locked[name]}
	case eval.Unknown:
		return r.mustLearn(name)
	case eval.Nowhere:
		return refuse(name, refusal)
	}
	return Decision{}
}

// ahead is for a command that is too long to be held: of so many words, the first ones are given.
// locked is set where these name a lock key. Else places are the words that may still be one; known
// is false where that is not known.
func (r *router) ahead(ctx context.Context, words [][]byte, total int) (places keys.Places, locked, known bool) {
	rule := r.rule(words[0])
	if rule == nil {
		return keys.Places{}, false, true
	}
	places, known = rule.Places(words, total)
	if name := syntax.Lower(words[0]); known && len(words) > 2 && (syntax.IsEval(name) || eval.IsFunction(name)) {
		var watched bool
		if locked, watched = r.scripts.Ahead(ctx, name, words, total); watched {
			places[1] = keys.Span{First: 3, Last: total - 1, Step: 1}
		}
	}
	lock, _ := r.lockKeys.Split(words, places)
	return places, locked || lock >= 0, known && !hasNUL(words[0])
}

// tooLong is the error for a command that is too long to be held and would have to be. words may be
// its first ones only.
func (r *router) tooLong(name string, words [][]byte) string {
	if syntax.BySHA(name) && len(words) > 1 && r.lockKeys.Any() && !r.scripts.Knows(words[1]) {
		return syntax.NoScript
	}
	return "ERR command too long: the proxy takes 1048576 bytes for a command of its own"
}

// refuse is the decision to answer with an error.
func refuse(name, text string) Decision {
	return Decision{Verb: Refuse, Text: text, Command: &command.Command{
		Name: name, Arity: -1, Guarded: true, Harmless: true, Run: func(c command.Call) { c.Out.Error(text) },
	}}
}

// abort is the decision to refuse a command, and with it the transaction.
func abort(name, text string) Decision {
	return Decision{Verb: Abort, Text: text, Command: &command.Command{
		Name: name, Arity: -1, Guarded: true, Harmless: true, Run: func(c command.Call) {
			c.Client.Transaction.Abort()
			c.Out.Error(text)
		},
	}}
}

// mixedWatch refuses a WATCH of a client that watches keys of the other kind: a transaction can
// only be held by one of both.
const mixedWatch = "ERR 'watch' of lock keys and others: some are on the lock masters, the others on the upstream; watch one kind at a time"

// noUpstream is the answer to a command on other keys than lock keys where there is no upstream.
func (r *router) noUpstream(name string, words [][]byte) string {
	if other := r.otherKey(words); other != nil {
		return fmt.Sprintf("ERR no upstream: key '%s' is not a lock key; set --upstream, or cover the key by --lock-keys", syntax.Shown(other))
	}
	return fmt.Sprintf("ERR no upstream: '%s' names no lock key; set --upstream, or cover its key by --lock-keys", name)
}

// otherKey is the first key of a command that is no lock key, or nil.
func (r *router) otherKey(words [][]byte) []byte {
	if rule := r.rule(words[0]); rule != nil {
		places, _ := rule.Places(words, len(words))
		if _, other := r.lockKeys.Split(words, places); other >= 0 {
			return words[other]
		}
	}
	return nil
}

// notQueued says why a command has no place in a transaction on lock keys.
func (r *router) notQueued(at Situation, words [][]byte) string {
	if own := r.own.Find(words[0]); own != nil && own.IsOurs() {
		return notInMulti(own)
	}
	if at.Down != "" {
		return at.Down
	}
	if other := r.otherKey(words); other != nil {
		return fmt.Sprintf("ERR '%s' in a transaction on lock keys: '%s' is on the upstream; send two transactions", syntax.Shown(words[0]), syntax.Shown(other))
	}
	return fmt.Sprintf("ERR '%s' in a transaction on lock keys: only commands on lock keys can be part of it", syntax.Shown(words[0]))
}

// lateInMulti is the error for a command on lock keys after others in a transaction of the
// upstream's.
func lateInMulti(name string) string {
	return fmt.Sprintf("ERR '%s' on a lock key in a transaction on other keys: lock keys are on the lock masters; send two transactions", name)
}

// notInMulti is the error for a command of the proxy's own in a transaction, in the wording that
// Redis has for WATCH.
func notInMulti(own *command.Command) string {
	return fmt.Sprintf("ERR %s inside MULTI is not allowed: the proxy runs it at once, so it cannot be part of a transaction; send it before or after",
		strings.ToUpper(own.Name))
}
