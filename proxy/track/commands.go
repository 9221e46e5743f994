package track

import (
	"slices"
	"strconv"
	"strings"

	"redlock-proxy/commands/catalog/spec"
	"redlock-proxy/commands/catalog/syntax"
)

// effect describes how a state command changes the state of the connection.
type effect struct {
	kind             Kind // the kind of the expected reply
	subscriptionKind SubscriptionKind
	delta            int // for Subscribe: the change of the subscription count per reply
}

// effects maps the effects of package spec to changes of the connection's state.
var effects = map[spec.Effect]effect{
	spec.SetsProtocol: {kind: Hello}, spec.LogsUserIn: {kind: Auth},
	spec.ResetsConnection: {kind: Reset}, spec.SelectsDB: {kind: Select},
	spec.BeginsTransaction: {kind: Multi}, spec.ExecutesTransaction: {kind: Exec}, spec.DiscardsTransaction: {kind: Discard},
	spec.WatchesKeys: {kind: Watch}, spec.UnwatchesKeys: {kind: Unwatch},
	spec.SubscribesChannels: {Subscribe, Channels, 1}, spec.UnsubscribesChannels: {Subscribe, Channels, -1},
	spec.SubscribesPatterns: {Subscribe, Patterns, 1}, spec.UnsubscribesPatterns: {Subscribe, Patterns, -1},
	spec.SubscribesShards: {Subscribe, Shards, 1}, spec.UnsubscribesShards: {Subscribe, Shards, -1},
	spec.MonitorsServer: {kind: Monitor}, spec.StreamsBytes: {kind: Sync},
	spec.ClosesConnection: {kind: Quit}, spec.ShutsDown: {kind: Quit}, spec.OtherEffect: {kind: Plain},
}

// stateCommands holds the forwarded commands whose replies may change the connection's state,
// blockingCommands the forwarded commands that may block.
var (
	stateCommands    = spec.Filter(func(c *spec.Command) bool { return c.Effect != spec.NoEffect })
	blockingCommands = spec.Filter(func(c *spec.Command) bool { return c.HasAny(spec.Blocks) })
)

// StateCommandName returns the name, in lower case, of a command whose reply may change the
// connection's state; empty for other commands.
func StateCommandName(name []byte) string {
	if c := stateCommands.Find(name); c != nil {
		return c.Name
	}
	return ""
}

// MayBlock reports whether a forwarded command may wait for other clients at the upstream.
func MayBlock(name []byte) bool { return blockingCommands.Find(name) != nil }

// ReplyMode is a mode of CLIENT REPLY.
type ReplyMode uint8

// The modes of CLIENT REPLY: ON, SKIP, OFF.
const (
	ReplyOn ReplyMode = iota
	ReplySkip
	ReplyOff
)

// ExpectedReplyFor returns the expected replies to a state command of count words; words holds the
// first of them.
func ExpectedReplyFor(name string, words [][]byte, count int) ExpectedReply {
	c := stateCommands.Find([]byte(name))
	if c == nil {
		return ExpectedReply{N: 1}
	}
	eff := effects[c.Effect]
	s := ExpectedReply{Kind: eff.kind, SubscriptionKind: eff.subscriptionKind, N: 1}
	switch c.Effect {
	case spec.SetsProtocol:
		if logsIn(words) {
			s.Arg = 1
		}
	case spec.SelectsDB:
		s.Arg = selectedDB(words)
	case spec.ClosesConnection:
		s.Arg = 1
	}
	if s.Kind == Subscribe {
		if s.N = count - 1; s.N == 0 && eff.delta < 0 {
			s.N = -1
		}
	}
	return s
}

// logsIn reports whether a HELLO logs in. A word that may be an AUTH option counts as one.
func logsIn(words [][]byte) bool {
	return slices.ContainsFunc(words[1:], func(word []byte) bool { return syntax.LowerCString(word) == "auth" })
}

// selectedDB returns the database of a SELECT. If the word is no number, the server replies with an
// error.
func selectedDB(words [][]byte) int {
	if len(words) < 2 {
		return 0
	}
	n, _ := strconv.Atoi(string(words[1]))
	return n
}

// ParseReplyMode returns the mode that a CLIENT REPLY sets; ok is false for other commands.
func ParseReplyMode(words [][]byte) (mode ReplyMode, ok bool) {
	if len(words) != 3 || !strings.EqualFold(string(words[0]), "client") ||
		!strings.EqualFold(string(words[1]), "reply") {
		return ReplyOn, false
	}
	switch syntax.LowerCString(words[2]) {
	case "on":
		return ReplyOn, true
	case "off":
		return ReplyOff, true
	case "skip":
		return ReplySkip, true
	}
	return ReplyOn, false
}

// Replyless says whether Redis answers a command outside of transactions, unless it refuses the
// command for lack of permission.
type Replyless uint8

// The values of Replyless.
const (
	Answered Replyless = iota
	MaybeAnswered
	NeverAnswered
)

// ReplylessOf returns NeverAnswered for REPLCONF ACK and GETACK. Redis reads the options one by one,
// so it answers only if it refuses an option before the ACK. It always refuses an option without a
// value.
func ReplylessOf(words [][]byte) Replyless {
	if !strings.EqualFold(string(words[0]), "replconf") || len(words)%2 == 0 {
		return Answered
	}
	for i := 1; i < len(words); i += 2 {
		switch option := syntax.LowerCString(words[i]); {
		case option != "ack" && option != "getack":
		case i == 1:
			return NeverAnswered
		default:
			return MaybeAnswered
		}
	}
	return Answered
}
