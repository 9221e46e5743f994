package command

import (
	"context"
	"strings"
	"time"

	"redlock-proxy/commands/catalog/keys"
	"redlock-proxy/commands/catalog/spec"
	"redlock-proxy/commands/catalog/syntax"
)

// Call describes a command that a client has sent.
type Call struct {
	// Ctx ends with the client's session.
	Ctx    context.Context
	Client *Client
	// Command is the description of the command.
	Command *Command
	// Args holds all words, including the name.
	Args [][]byte
	// Out receives the reply.
	Out *Reply
	// FirstArrival is the arrival time of a call that runs again because the locks have moved
	// meanwhile. It is zero on the first run.
	FirstArrival time.Time
}

// RemainingWait returns the remaining time of a wait that began when the call arrived; zero if the
// time is up. A negative wait is unlimited.
func (c Call) RemainingWait(wait time.Duration) time.Duration {
	if c.FirstArrival.IsZero() || wait <= 0 {
		return wait
	}
	return max(0, wait-time.Since(c.FirstArrival))
}

// AskUpstream returns the upstream's reply to the call, or nil if there is no upstream. ok is false
// if there is no reply, or if the reply is an error. AskUpstream has then written the error to Out.
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
		c.Out.WriteRaw(reply)
		return nil, false
	}
	return reply, true
}

// SyntaxError replies that a call has the wrong form. For a command that Redis does not have, it
// appends the usage to a syntax or arity error.
func (c Call) SyntaxError(text string) {
	if c.Command.IsOwn() && len(c.Command.Docs.Args) > 0 {
		switch {
		case text == syntax.ErrSyntax, text == syntax.WrongArity(c.Command.Name):
			text += ": " + c.Command.Usage()
		case strings.HasPrefix(text, syntax.ErrSyntax+": "): // text names the wrong word
			text += "; use " + c.Command.Usage()
		}
	}
	c.Out.WriteError(text)
}

// Command describes a command that the proxy answers itself.
type Command struct {
	// Name is in lower case.
	Name string
	// Arity is the number of words, including the name. If it is negative, -Arity is the minimum.
	Arity int
	// RequiresLogin is set if the command requires a login when the upstream does.
	RequiresLogin bool
	// NeedsUpstreamReply is set if the proxy makes the reply from the upstream's reply.
	NeedsUpstreamReply bool
	// NeverForwarded is set if the proxy never forwards the command, although Redis has it.
	// NeverForwards reports the same of a single call; nil if the proxy may forward all calls.
	NeverForwarded bool
	NeverForwards  func(words [][]byte) bool
	// Unlimited is set if the upstream may take unlimited time for the command.
	Unlimited bool
	// ActsLocally is set if the command also acts in the proxy. Such a command does not go to the
	// upstream while CLIENT REPLY is off, and cannot be part of a transaction at the upstream.
	ActsLocally bool
	// FiltersReply reports whether the proxy removes something from the upstream's reply to a call.
	// Such a call cannot be part of a transaction at the upstream. If FiltersReply is nil, the
	// proxy removes nothing.
	FiltersReply func(words [][]byte) bool
	// RunsWithoutClient reports whether a call does not use its client until the proxy has the
	// reply. Such a call does not watch for a disconnect, query the client, or close its
	// connection. If RunsWithoutClient is nil, every call uses its client.
	RunsWithoutClient func(words [][]byte) bool
	// AffectsAllLocks is set if the command affects all lock keys although it names none.
	AffectsAllLocks bool
	// AlwaysFails is set if Run only replies with an error. Then the command requires no
	// permission.
	AlwaysFails bool
	// Run answers a call whose number of words fits Arity.
	Run func(Call)
	// Docs is the documentation for COMMAND.
	Docs Docs
}

// NewRedisCommand returns a command that Redis has, too, with Redis' arity.
func NewRedisCommand(name string, run func(Call), docs Docs) *Command {
	return &Command{Name: name, Arity: spec.Find([]byte(name)).Arity, Run: run, Docs: docs}
}

// IsOwn reports whether the command is the proxy's own: Redis does not have it.
func (c *Command) IsOwn() bool { return c.Docs.Group == OwnGroup }

// MayWait reports whether a call of a command with RunsWithoutClient may wait for other clients.
// For any other command it returns false, even if the command may wait.
func (c *Command) MayWait(words [][]byte) bool {
	return c.RunsWithoutClient != nil && !c.RunsWithoutClient(words)
}

// NeverForwardsCall reports whether the proxy never forwards a call.
func (c *Command) NeverForwardsCall(words [][]byte) bool {
	return c.NeverForwarded || c.NeverForwards != nil && c.NeverForwards(words)
}

// FiltersReplyOf reports whether the proxy removes something from the upstream's reply to a call.
func (c *Command) FiltersReplyOf(words [][]byte) bool {
	return c.FiltersReply != nil && c.FiltersReply(words)
}

// Places returns the places of the keys of a call.
func (c *Command) Places(words [][]byte) keys.Places {
	rule := c.keyRule()
	if rule == nil {
		return keys.Places{}
	}
	places, _ := rule.Places(words, len(words))
	return places
}

// keyRule returns the rule for the keys of the command; nil if it has none.
func (c *Command) keyRule() *keys.Rule {
	if rule := spec.KeysOf([]byte(c.Name)); rule != nil && !c.IsOwn() {
		return rule
	}
	return c.Docs.KeyRule()
}

// HasKeys reports whether some of the command's words are, or may be, keys.
func (c *Command) HasKeys() bool { return c.Docs.KeyRule() != nil || c.hasMovableKeys() }

// hasMovableKeys reports whether the places of the keys depend on the words of a call.
func (c *Command) hasMovableKeys() bool {
	rule := c.keyRule()
	if rule == nil {
		return false
	}
	_, fixed := rule.FixedSpan()
	return !fixed
}
