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

// Action names the action that the proxy takes on a command.
type Action uint8

// The actions. Each comment describes the action on the command. After WaitUpstream, Connect and
// AdoptTx, the caller asks the router again.
const (
	Forward         Action = iota // relay it to the upstream as it is
	WaitUpstream                  // wait until the upstream has replied to everything sent before
	Connect                       // try to connect to the upstream
	AdoptTx                       // turn the upstream's empty transaction into one of the proxy's own
	Resolve                       // look up the script or function first: see Table.ResolveScript
	Run                           // answer it with the proxy's own command
	Refuse                        // answer it with an error
	Abort                         // answer it with an error, and abort the proxy's own transaction
	AbortUpstreamTx               // answer it with an error, and make the upstream refuse the EXEC
	NoScript                      // make the upstream answer NOSCRIPT when it carries out its transaction
	Quit                          // treat it as a command after QUIT
	Close                         // close the connection: no reply would fit the unknown state
)

// Decision holds the action that the proxy takes on a command, with its details.
type Decision struct {
	Action Action
	// Command answers the command, for Resolve, Run, Refuse and Abort.
	Command *command.Command
	// Text is the error, for Refuse, Abort and AbortUpstreamTx.
	Text string
}

// Situation holds the state of a client on which a decision depends. The zero value describes a new
// client.
type Situation struct {
	// InMulti is set in a transaction of the proxy's own. Watching is set while the client watches
	// lock keys.
	InMulti, Watching bool
	// UpstreamError is the error if the upstream cannot be reached; empty if it can be reached, or
	// if that is unknown.
	UpstreamError string
	// Connected is set after the proxy has tried to connect to the upstream for this command.
	Connected bool
	// Upstream is the client's connection to the upstream.
	Upstream Connection
	// TooLong is set if the proxy would have to hold the command in memory, but the command is too
	// long. Then the router gets only its first words.
	TooLong bool
}

// Connection holds the state of a client's connection to the upstream.
type Connection struct {
	// Settled is set when the upstream has replied to everything sent. Until then the other fields
	// mean nothing.
	Settled bool
	// Quitting is set after the client asked to close the connection. Stream is set if the rest of
	// the connection is a stream of bytes instead of replies.
	Quitting, Stream bool
	// Multi is set in a transaction, Queued after a command was sent in it.
	Multi, Queued bool
	// Watching is set while the client watches keys at the upstream.
	Watching bool
	// Restricted is set while the connection receives messages in RESP2 and accepts only a few
	// commands. ProtocolUncertain is set if the connection may have switched protocols. Monitoring
	// is set while the connection receives the commands of other clients.
	Restricted, ProtocolUncertain, Monitoring bool
	// RepliesOff is set while the client wants no replies.
	RepliesOff bool
}

// router decides how the proxy treats a command. Its decisions depend only on the situation, the
// words, and the known scripts and functions. It is safe for concurrent use.
type router struct {
	lockKeys keys.Patterns
	// hasUpstream is set if there is an upstream. hasMessages is set if the proxies carry messages.
	hasUpstream, hasMessages bool
	// ownCommands holds the commands that the proxy answers itself, lockKeyCommands the commands
	// that run on lock keys, and txCommands the commands of transactions.
	ownCommands                 *syntax.Names[*command.Command]
	lockKeyCommands, txCommands map[string]*command.Command
	scripts                     *eval.Scripts
	// queue adds a command to a transaction.
	queue func(command.Call)
}

// route decides how the proxy treats a command.
func (r *router) route(at Situation, words [][]byte) Decision {
	own := r.ownCommands.Find(words[0])
	if own != nil && !at.TooLong && !at.InMulti { // the fast path of the most frequent commands
		return r.routeOwn(own, at, words)
	}
	name := syntax.Lower(words[0])
	switch {
	case at.TooLong:
		return refuse(name, r.tooLongError(name, words))
	case at.InMulti && name != "quit" && name != "reset":
		return r.adaptToConnection(at, name, r.routeInMulti(at, name, words))
	case own != nil:
		return r.routeOwn(own, at, words)
	case !r.lockKeys.HasPatterns():
		return r.routeUpstream(name, words)
	}
	switch name {
	case "multi":
		return r.routeMulti(at)
	case "watch":
		return r.routeWatch(at, words)
	case "unwatch":
		if at.Watching {
			return r.adaptToConnection(at, name, Decision{Action: Run, Command: r.txCommands[name]})
		}
		return Decision{}
	}
	return r.adaptToConnection(at, name, r.routeByKeys(name, words))
}

// routeOwn decides about a command that the proxy answers itself.
func (r *router) routeOwn(ownCommand *command.Command, at Situation, words [][]byte) Decision {
	if r.hasUpstream {
		return routeOwnRelayed(ownCommand, at.Upstream, words)
	}
	return Decision{Action: Run, Command: ownCommand}
}

// adaptToConnection adapts a decision about a command on lock keys to the upstream connection.
func (r *router) adaptToConnection(at Situation, name string, d Decision) Decision {
	u := at.Upstream
	switch {
	case !r.hasUpstream || d.Action == Forward:
		return d
	case !u.Settled:
		return Decision{Action: WaitUpstream}
	case u.Stream && !u.Quitting: // the connection may be in a transaction unknown to the proxy
		return Decision{Action: Close}
	case d.Action == Resolve && (u.Restricted && !u.ProtocolUncertain || u.Quitting):
		return Decision{} // the upstream refuses it in any case
	case d.Action == Resolve:
		return d
	case u.Quitting:
		return Decision{Action: Quit}
	case u.Multi && d.Action == NoScript:
		return d
	case d.Action == NoScript:
		return refuse(name, syntax.NoScript)
	case u.Multi && name == "watch":
		return Decision{} // the upstream refuses a WATCH inside MULTI
	case u.Multi && !u.Queued && !u.Watching:
		return Decision{Action: AdoptTx}
	case u.Multi:
		return Decision{Action: AbortUpstreamTx, Text: lateInMultiError(name)}
	case u.Watching && name == "watch":
		return refuse(name, mixedWatchError)
	}
	return d
}

// routeOwnRelayed decides about a command that the proxy answers itself, if there is an upstream.
// In a transaction, and in a stream that the proxy cannot follow, the command goes to the upstream.
// If the upstream must not get the command, or the proxy would have to change the reply, the
// transaction fails, or the proxy closes the connection.
//
// A command that needs the upstream's reply also goes to the upstream if the proxy would not get
// that reply. The reply to a subscribed client is an exception if it must be filtered: the client
// may speak RESP3, or the upstream may have ended the subscription, and then the upstream answers.
func routeOwnRelayed(ownCommand *command.Command, u Connection, words [][]byte) Decision {
	neverForwards := ownCommand.NeverForwardsCall(words)
	switch {
	case !u.Settled:
		return Decision{Action: WaitUpstream}
	case u.Quitting:
		return Decision{Action: Quit}
	case u.Stream && (ownCommand.IsOwn() || neverForwards || ownCommand.FiltersReplyOf(words)):
		return Decision{Action: Close}
	case u.Multi && !u.Stream && (ownCommand.IsOwn() || neverForwards || ownCommand.ActsLocally || ownCommand.FiltersReplyOf(words)):
		return Decision{Action: AbortUpstreamTx, Text: notInMultiError(ownCommand)}
	case u.Multi || u.Stream || !neverForwards && ownCommand.NeedsUpstreamReply && (u.RepliesOff && !ownCommand.ActsLocally || u.Restricted && !ownCommand.FiltersReplyOf(words) || u.Monitoring):
		return Decision{}
	}
	return Decision{Action: Run, Command: ownCommand}
}

// routeMulti decides about MULTI. The transaction is the upstream's, unless the upstream cannot be
// reached or the client watches lock keys. In these cases the proxy runs the transaction itself, so
// that the client can still release a lock.
func (r *router) routeMulti(at Situation) Decision {
	own := Decision{Action: Run, Command: r.txCommands["multi"]}
	switch {
	case at.Watching, at.Connected && at.UpstreamError != "":
		return r.adaptToConnection(at, "multi", own)
	case !at.Connected:
		return Decision{Action: Connect}
	}
	return Decision{}
}

// routeWatch decides about WATCH. A transaction can watch lock keys or ordinary keys, but not both.
func (r *router) routeWatch(at Situation, words [][]byte) Decision {
	places, _ := spec.KeysOf(words[0]).Places(words, len(words))
	switch lockIndex, otherIndex := r.lockKeys.Split(words, places); {
	case lockIndex < 0 && otherIndex >= 0 && at.Watching:
		return r.adaptToConnection(at, "watch", refuse("watch", mixedWatchError))
	case lockIndex < 0:
		return r.routeUpstream("watch", words)
	case otherIndex >= 0:
		return r.adaptToConnection(at, "watch", refuse("watch", lockkeys.MixedKeysError("watch", words[lockIndex], words[otherIndex])))
	}
	return r.adaptToConnection(at, "watch", Decision{Action: Run, Command: r.txCommands["watch"]})
}

// routeInMulti decides about a command in a transaction of the proxy's own.
func (r *router) routeInMulti(at Situation, name string, words [][]byte) Decision {
	switch {
	case name == "multi", name == "exec", name == "discard", name == "watch":
		return Decision{Action: Run, Command: r.txCommands[name]}
	case transaction.IsConnectionCommand(name) && at.UpstreamError == "", r.hasMessages && syntax.IsPublish(name):
		return Decision{Action: Run, Command: &command.Command{Name: name, Arity: -1, RequiresLogin: true, Run: r.queue}}
	}
	switch d := r.routeMasters(name, words); d.Action {
	case Forward:
		return abort(name, r.notQueuedError(at, words))
	case Refuse:
		return abort(name, d.Text)
	}
	return Decision{Action: Run, Command: &command.Command{Name: name, Arity: -1, RequiresLogin: true, Run: r.queue}}
}

// routeByKeys decides about a command outside a transaction by its keys.
func (r *router) routeByKeys(name string, words [][]byte) Decision {
	d := r.routeMasters(name, words)
	if d.Action == Forward {
		return r.routeUpstream(name, words)
	}
	return d
}

// routeUpstream decides about a command that is not for the lock masters.
func (r *router) routeUpstream(name string, words [][]byte) Decision {
	switch {
	case r.hasUpstream:
		return Decision{}
	case len(words) == 1:
		return refuse(name, syntax.WrongArity(name))
	}
	return refuse(name, r.noUpstreamError(name, words))
}

// routeMasters decides about a command that may name a lock key, by its words alone.
func (r *router) routeMasters(name string, words [][]byte) Decision {
	rule := r.keyRule(words[0])
	if rule == nil {
		return Decision{}
	}
	if hasNUL(words[0]) {
		return refuse(name, syntax.UnknownCommand(words))
	}
	places, _ := rule.Places(words, len(words))
	lockIndex, otherIndex := r.lockKeys.Split(words, places)
	cmd := r.lockKeyCommands[name]
	switch {
	case lockIndex < 0 && (syntax.IsEval(name) || eval.IsFCall(name)):
		at, refusal := r.scripts.Route(name, words)
		return r.routeScript(name, at, refusal)
	case lockIndex < 0:
		return Decision{}
	case cmd == nil:
		return refuse(name, lockkeys.UnfitKeyError(name, words[lockIndex]))
	case otherIndex >= 0 && !syntax.IsEval(name):
		return refuse(name, lockkeys.MixedKeysError(name, words[lockIndex], words[otherIndex]))
	}
	return Decision{Action: Run, Command: cmd}
}

// hasNUL reports whether a name has a zero byte. Redis may ignore the bytes after the zero byte.
func hasNUL(name []byte) bool { return bytes.IndexByte(name, 0) >= 0 }

// keyRule returns the rule for the keys of a command. With an upstream, every word of an unknown
// command counts as a key. keyRule returns nil if the command has no keys, or if there are no lock
// keys.
func (r *router) keyRule(name []byte) *keys.Rule {
	if !r.lockKeys.HasPatterns() {
		return nil
	}
	rule := spec.KeysOf(name)
	if rule != nil || !r.hasUpstream || r.ownCommands.Find(name) != nil || !hasNUL(name) && spec.IsKeyless(name) {
		return rule
	}
	return keys.AnyWord
}

// resolveFirst decides to look up a script or function before the router decides about the command.
// Without an upstream, the Command of the decision looks it up and then runs the command.
func (r *router) resolveFirst(name string) Decision {
	run := func(c command.Call) {
		switch d := r.resolve(c.Ctx, c.Client, c.Args); d.Action {
		case Forward:
			c.Out.WriteError(r.noUpstreamError(name, c.Args))
		case NoScript:
			c.Out.WriteError(syntax.NoScript)
		default:
			d.Command.Run(c)
		}
	}
	return Decision{Action: Resolve, Command: &command.Command{Name: name, Arity: -1, RequiresLogin: true, Run: run}}
}

// resolve looks up a script or function at the masters and the upstream, and decides about the
// command by its contents.
func (r *router) resolve(ctx context.Context, c *command.Client, words [][]byte) Decision {
	name := syntax.Lower(words[0])
	at, refusal := r.scripts.ResolveScript(ctx, c, name, words)
	d := r.routeScript(name, at, refusal)
	if d.Action == Resolve {
		return Decision{Action: NoScript}
	}
	return d
}

// routeScript decides about a script or function by its target.
func (r *router) routeScript(name string, at eval.Target, refusal string) Decision {
	switch at {
	case eval.OnMasters:
		return Decision{Action: Run, Command: r.lockKeyCommands[name]}
	case eval.Unknown:
		return r.resolveFirst(name)
	case eval.Refused:
		return refuse(name, refusal)
	}
	return Decision{}
}

// preview implements Table.Preview.
func (r *router) preview(ctx context.Context, words [][]byte, total int) (places keys.Places, locked, known bool) {
	rule := r.keyRule(words[0])
	if rule == nil {
		return keys.Places{}, false, true
	}
	places, known = rule.Places(words, total)
	if name := syntax.Lower(words[0]); known && len(words) > 2 && (syntax.IsEval(name) || eval.IsFCall(name)) {
		var watched bool
		if locked, watched = r.scripts.Preview(ctx, name, words, total); watched {
			places[1] = keys.Span{First: 3, Last: total - 1, Step: 1}
		}
	}
	lockIndex, _ := r.lockKeys.Split(words, places)
	return places, locked || lockIndex >= 0, known && !hasNUL(words[0])
}

// tooLongError returns the error for a command that is too long to be held in memory. words may
// hold only its first words.
func (r *router) tooLongError(name string, words [][]byte) string {
	if syntax.TakesSHA(name) && len(words) > 1 && r.lockKeys.HasPatterns() && !r.scripts.Knows(words[1]) {
		return syntax.NoScript
	}
	return "ERR command too long: commands that the proxy itself runs are limited to 1048576 bytes"
}

// refuse decides to answer with an error.
func refuse(name, text string) Decision {
	return Decision{Action: Refuse, Text: text, Command: &command.Command{
		Name: name, Arity: -1, RequiresLogin: true, AlwaysFails: true, Run: func(c command.Call) { c.Out.WriteError(text) },
	}}
}

// abort decides to answer with an error, and to abort the proxy's own transaction.
func abort(name, text string) Decision {
	return Decision{Action: Abort, Text: text, Command: &command.Command{
		Name: name, Arity: -1, RequiresLogin: true, AlwaysFails: true, Run: func(c command.Call) {
			c.Client.Transaction.Abort()
			c.Out.WriteError(text)
		},
	}}
}

// mixedWatchError is the error for a WATCH of lock keys while the client watches other keys, or of
// other keys while it watches lock keys.
const mixedWatchError = "ERR 'watch' cannot watch both lock keys and other keys: lock keys are on the lock masters, " +
	"other keys on the upstream; watch one kind at a time"

// UnknownCommand returns the error for a command that a proxy without an upstream does not know, in
// Redis' wording. If Redis itself has the command, the error names the setting that helps.
func UnknownCommand(words [][]byte) string {
	text := syntax.UnknownCommand(words)
	// Commands of modules have no arity.
	if known := spec.Find(words[0]); known != nil && known.Arity != 0 {
		text += "(no upstream; set --upstream)"
	}
	return text
}

// noUpstreamError returns the error of a proxy without an upstream for a command that needs an
// upstream. The error names the first key that is not a lock key, if there is one.
func (r *router) noUpstreamError(name string, words [][]byte) string {
	if other := r.ordinaryKey(words); other != nil {
		return fmt.Sprintf("ERR no upstream: key '%s' is not a lock key; "+
			"set --upstream, or cover the key by --lock-keys", syntax.Excerpt(other))
	}
	return fmt.Sprintf("ERR no upstream: '%s' names no lock key; set --upstream, or cover its key by --lock-keys", name)
}

// ordinaryKey returns the first ordinary key of a command, or nil.
func (r *router) ordinaryKey(words [][]byte) []byte {
	if rule := r.keyRule(words[0]); rule != nil {
		places, _ := rule.Places(words, len(words))
		if _, otherIndex := r.lockKeys.Split(words, places); otherIndex >= 0 {
			return words[otherIndex]
		}
	}
	return nil
}

// notQueuedError returns the error for a command that cannot be part of a transaction on lock keys.
func (r *router) notQueuedError(at Situation, words [][]byte) string {
	if own := r.ownCommands.Find(words[0]); own != nil && own.IsOwn() {
		return notInMultiError(own)
	}
	if at.UpstreamError != "" {
		return at.UpstreamError
	}
	if other := r.ordinaryKey(words); other != nil {
		return fmt.Sprintf("ERR '%s' cannot be part of a transaction on lock keys: key '%s' is on the upstream; "+
			"send two transactions",
			syntax.Excerpt(words[0]), syntax.Excerpt(other))
	}
	return fmt.Sprintf("ERR '%s' cannot be part of a transaction on lock keys: it is not a command on lock keys; "+
		"send it before MULTI or after EXEC", syntax.Excerpt(words[0]))
}

// lateInMultiError returns the error for a command on lock keys in an upstream transaction with
// other commands.
func lateInMultiError(name string) string {
	return fmt.Sprintf("ERR '%s' on a lock key cannot be part of a transaction on other keys: "+
		"lock keys are on the lock masters; send two transactions", name)
}

// notInMultiError returns the error for a command that the proxy answers itself, in a transaction.
// Its wording begins like that of Redis for WATCH.
func notInMultiError(ownCommand *command.Command) string {
	return fmt.Sprintf("ERR %s inside MULTI is not allowed: the proxy runs it at once, "+
		"so it cannot be part of a transaction; send it before MULTI or after EXEC", strings.ToUpper(ownCommand.Name))
}
