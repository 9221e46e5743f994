package command

import (
	"context"
	"time"

	"redlock-proxy/commands/catalog/keys"
	"redlock-proxy/commands/catalog/spec"
	"redlock-proxy/commands/catalog/syntax"
)

// Call is a command that a client has sent.
type Call struct {
	// Ctx ends when the client's session does.
	Ctx    context.Context
	Client *Client
	// Command is the one that was called.
	Command *Command
	// Args are all its words, the name included.
	Args [][]byte
	// Out takes the reply.
	Out *Reply
	// Came is when a call came that is run again, because the locks are elsewhere by now. It is
	// zero where it is run for the first time.
	Came time.Time
}

// Left is what is left by now of a wait that began when the call came: zero where it is over. A
// negative one is without an end.
func (c Call) Left(wait time.Duration) time.Duration {
	if c.Came.IsZero() || wait <= 0 {
		return wait
	}
	return max(0, wait-time.Since(c.Came))
}

// AskUpstream is the upstream's reply to the call, nil where there is no upstream. ok is false for
// one that is no success: it is answered already.
func (c Call) AskUpstream() (reply []byte, ok bool) {
	if c.Client.Ask == nil {
		return nil, true
	}
	reply, err := c.Client.Ask(c.Ctx)
	switch {
	case err != nil:
		c.Out.Fail(err)
		return nil, false
	case len(reply) == 0 || reply[0] == '-':
		c.Out.Raw(reply)
		return nil, false
	}
	return reply, true
}

// Misread answers that a call cannot be read. Of a command that Redis does not have it also says
// how it is written, if that was wrong.
func (c Call) Misread(text string) {
	form := text == syntax.ErrSyntax || text == syntax.WrongArity(c.Command.Name)
	if form && c.Command.IsOurs() && len(c.Command.Docs.Args) > 0 {
		text += ": " + c.Command.Usage()
	}
	c.Out.Error(text)
}

// Command is one that the proxy answers itself.
type Command struct {
	// Name is in lower case.
	Name string
	// Arity counts the words, the name included; negative: at least so many.
	Arity int
	// Guarded is set where a login is needed, at an upstream that demands one.
	Guarded bool
	// Asks is set where the answer is made of the upstream's.
	Asks bool
	// Local is set for a command that Redis knows, too, and that is never for the upstream.
	Local bool
	// Patient is set where the upstream may take as long for it as for any command of the client's.
	// Else its time is bounded.
	Patient bool
	// Aloud is set where something is done beside what the upstream does: then it is not left to
	// the upstream in silence, nor in a transaction there.
	Aloud bool
	// Hides reports of a call whether something is taken out of the upstream's reply: then it has
	// no place in a transaction there. Nil: of none.
	Hides func(words [][]byte) bool
	// Brief reports of a call whether it leaves its client alone until it is answered: it does not
	// watch for it to leave, ask anything of it, or end its connection. Nil: none does.
	Brief func(words [][]byte) bool
	// AllLocks is set where it is about all lock keys, though it names none.
	AllLocks bool
	// Harmless is set where it only says why something cannot be done: no right is needed for that.
	Harmless bool
	// Run answers a call of so many words.
	Run func(Call)
	// Docs are what COMMAND says of it.
	Docs Docs
}

// OfRedis is a command that Redis has, too, with the arity that it has there.
func OfRedis(name string, run func(Call), docs Docs) *Command {
	return &Command{Name: name, Arity: spec.Find([]byte(name)).Arity, Run: run, Docs: docs}
}

// IsOurs reports whether the upstream does not know the command.
func (c *Command) IsOurs() bool { return c.Docs.Group == OwnGroup }

// MayWait reports whether a call is one that waits for others, of a command that has brief ones,
// too.
func (c *Command) MayWait(words [][]byte) bool { return c.Brief != nil && !c.Brief(words) }

// HidesIn reports whether something is taken out of the upstream's reply to a call.
func (c *Command) HidesIn(words [][]byte) bool { return c.Hides != nil && c.Hides(words) }

// Places are where the keys of a call stand.
func (c *Command) Places(words [][]byte) keys.Places {
	if rule := spec.KeysOf([]byte(c.Name)); rule != nil && !c.IsOurs() {
		places, _ := rule.Places(words, len(words))
		return places
	}
	return keys.Places{c.Docs.Span().Within(len(words))}
}

// Keyed reports whether some of its words are keys, or may be.
func (c *Command) Keyed() bool {
	return c.Docs.Span() != keys.Span{} || c.moves()
}

// moves reports whether its words say where its keys are.
func (c *Command) moves() bool {
	rule := spec.KeysOf([]byte(c.Name))
	if rule == nil || c.IsOurs() {
		return false
	}
	_, fixed := rule.Fixed()
	return !fixed
}
