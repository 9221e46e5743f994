package track

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// testTracker holds a tracker that a test feeds in place of an upstream.
type testTracker struct {
	Tracker
	repliesOff bool     // commands get no reply
	answers    []string // replies to internal commands
}

func newTestTracker() *testTracker { return &testTracker{Tracker: NewTracker(0, false)} }

// expectReplies adds the expected replies to commands, as a session that forwards them does.
func (l *testTracker) expectReplies(commands string) {
	for line := range strings.SplitSeq(commands, "\n") {
		var words [][]byte
		for word := range strings.FieldsSeq(line) {
			words = append(words, []byte(word))
		}
		switch name := StateCommandName(words[0]); {
		case name == "":
			l.AwaitedReplies.AddPlain(1)
		case l.repliesOff:
			l.State.RecordReplyless(ExpectedReplyFor(name, words, len(words)))
		default:
			l.AwaitedReplies.Add(ExpectedReplyFor(name, words, len(words)))
		}
	}
}

// feed passes the upstream's bytes to the tracker, in one piece or byte by byte.
func (l *testTracker) feed(sent string, whole bool) {
	if whole {
		l.filter(sent)
		return
	}
	for i := range sent {
		l.filter(sent[i : i+1])
	}
}

// filter returns the client's part of the bytes that arrive.
func (l *testTracker) filter(sent string) (passed string) {
	for len(sent) > 0 && !l.Streaming(sent[0]) {
		part, _ := l.Next([]byte(sent))
		if part.InternalReply && len(l.answers) == 0 {
			l.answers = []string{""}
		}
		if part.InternalReply {
			l.answers[len(l.answers)-1] += sent[:part.Size]
		} else {
			passed += sent[:part.Size]
		}
		if part.EndsInternalReply {
			l.answers = append(l.answers, "")
		}
		sent = sent[part.Size:]
	}
	return passed + sent
}

// String returns the protocol, the database, and all state that differs from that of a new
// connection.
func (l *testTracker) String() string {
	state := &l.State
	parts := []string{fmt.Sprintf("proto %d, db %d", state.Proto, state.DB)}
	addIf := func(condition bool, text string) {
		if condition {
			parts = append(parts, text)
		}
	}
	addIf(state.ProtoUnknown, "proto?")
	addIf(state.DBUnknown, "db?")
	addIf(state.UserChanged, "renamed")
	addIf(state.Multi, "multi")
	addIf(state.HasSubscriptions(), fmt.Sprintf("%d subscriptions, %v", state.subscriptionCount, state.subscriptionsByKind))
	addIf(state.Monitoring, "monitoring")
	addIf(state.Stream, "stream")
	addIf(state.Quitting, "quitting")
	addIf(!l.AwaitedReplies.Empty(), fmt.Sprintf("%d owed", l.AwaitedReplies.PendingCount()))
	return strings.Join(parts, ", ")
}

// acks2 and acks3 return replies to SUBSCRIBE and UNSUBSCRIBE in the two protocols.
func acks2(word, channel string, count int) string { return ackOf("*", word, channel, count) }
func acks3(word, channel string, count int) string { return ackOf(">", word, channel, count) }

func ackOf(kind, word, channel string, count int) string {
	return fmt.Sprintf("%s3\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n:%d\r\n", kind, len(word), word, len(channel), channel, count)
}

const (
	helloMap       = "%1\r\n$5\r\nproto\r\n:3\r\n"
	helloArray     = "*2\r\n$5\r\nproto\r\n:2\r\n"
	aMessage       = "*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$1\r\nm\r\n"
	aPush          = ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n"
	execAbortReply = "-EXECABORT Transaction discarded because of previous errors.\r\n"
)

// stateCases lists the states after commands and the upstream's replies to them.
var stateCases = []struct{ name, sent, replies, want string }{
	{"nothing", "PING", "+PONG\r\n", "proto 2, db 0"},
	{"not answered yet", "PING\nGET a", "+PONG\r\n", "proto 2, db 0, 1 owed"},

	{"hello", "HELLO", helloArray, "proto 2, db 0"},
	{"hello 3", "HELLO 3", helloMap, "proto 3, db 0"},
	{"hello 3, setname", "HELLO 3 SETNAME x", helloMap, "proto 3, db 0"},
	{"hello with login", "HELLO 3 AUTH u p", helloMap, "proto 3, db 0, renamed"},
	{"hello with login in small letters", "hello 2 setname x auth u p", helloArray, "proto 2, db 0, renamed"},
	{"hello refused", "HELLO 4", "-NOPROTO unsupported protocol version\r\n", "proto 2, db 0"},
	{"hello with wrong login", "HELLO 3 AUTH u p", "-WRONGPASS x\r\n", "proto 2, db 0, renamed"},
	{"hello unknown", "HELLO 3", "-ERR unknown command 'HELLO'\r\n", "proto 2, db 0"},
	{"back to 2", "HELLO 3\nHELLO 2", helloMap + helloArray, "proto 2, db 0"},
	{"refused in 3", "HELLO 3\nHELLO 4", helloMap + "-NOPROTO x\r\n", "proto 3, db 0"},

	{"auth", "AUTH p", "+OK\r\n", "proto 2, db 0, renamed"},
	{"auth refused", "AUTH p", "-WRONGPASS x\r\n", "proto 2, db 0, renamed"},
	{"auth, then refused", "AUTH u p\nAUTH x", "+OK\r\n-WRONGPASS x\r\n", "proto 2, db 0, renamed"},

	{"select", "SELECT 3", "+OK\r\n", "proto 2, db 3"},
	{"select refused", "SELECT 3\nSELECT 99", "+OK\r\n-ERR DB index is out of range\r\n", "proto 2, db 3"},
	{"select nothing", "SELECT", "-ERR wrong number of arguments for 'select' command\r\n", "proto 2, db 0"},

	{"multi", "MULTI", "+OK\r\n", "proto 2, db 0, multi"},
	{"multi refused", "MULTI x", "-ERR wrong number of arguments for 'multi' command\r\n", "proto 2, db 0"},
	{"nested", "MULTI\nMULTI", "+OK\r\n-ERR MULTI calls can not be nested\r\n", "proto 2, db 0, multi"},
	{"exec", "MULTI\nGET a\nEXEC", "+OK\r\n+QUEUED\r\n*1\r\n$-1\r\n", "proto 2, db 0"},
	{"exec of nothing done", "WATCH a\nMULTI\nEXEC", "+OK\r\n+OK\r\n*-1\r\n", "proto 2, db 0"},
	{"exec aborted", "MULTI\nLOCK\nEXEC", "+OK\r\n-ERR unknown command\r\n" + execAbortReply, "proto 2, db 0"},
	{"exec refused", "MULTI\nEXEC", "+OK\r\n-LOADING x\r\n", "proto 2, db 0, multi"},
	{"exec outside", "EXEC", "-ERR EXEC without MULTI\r\n", "proto 2, db 0"},
	{"discard", "MULTI\nSELECT 3\nDISCARD", "+OK\r\n+QUEUED\r\n+OK\r\n", "proto 2, db 0"},
	{"discard refused", "MULTI\nDISCARD x", "+OK\r\n-ERR wrong number of arguments for 'discard' command\r\n",
		"proto 2, db 0, multi"},
	{"select in multi", "MULTI\nSELECT 3", "+OK\r\n+QUEUED\r\n", "proto 2, db 0, multi"},
	{"select in multi, executed", "MULTI\nSELECT 3\nEXEC", "+OK\r\n+QUEUED\r\n*1\r\n+OK\r\n", "proto 2, db 0, db?"},
	{"select in multi, aborted", "MULTI\nSELECT 3\nEXEC", "+OK\r\n+QUEUED\r\n" + execAbortReply, "proto 2, db 0"},
	{"select in multi, not done", "MULTI\nSELECT 3\nEXEC", "+OK\r\n+QUEUED\r\n*-1\r\n", "proto 2, db 0"},
	{"select behind it", "MULTI\nSELECT 3\nEXEC\nSELECT 4", "+OK\r\n+QUEUED\r\n*1\r\n+OK\r\n+OK\r\n", "proto 2, db 4"},
	{"select of one transaction is not of the next", "MULTI\nSELECT 3\nDISCARD\nMULTI\nEXEC",
		"+OK\r\n+QUEUED\r\n+OK\r\n+OK\r\n*0\r\n", "proto 2, db 0"},
	{"hello in multi", "MULTI\nHELLO 3\nEXEC", "+OK\r\n+QUEUED\r\n*1\r\n" + helloMap, "proto 2, db 0, proto?"},
	{"unsubscribe behind a hello in multi", "HELLO 3\nMULTI\nHELLO 2\nEXEC\nPUNSUBSCRIBE a b c\nGET a\nGET b",
		helloMap + "+OK\r\n+QUEUED\r\n*1\r\n" + helloArray + acks2("punsubscribe", "a", 0) +
			acks2("punsubscribe", "b", 0) + acks2("punsubscribe", "c", 0) + "+x\r\n",
		"proto 3, db 0, proto?, 1 owed"},
	{"hello behind it", "MULTI\nHELLO 3\nEXEC\nHELLO 3", "+OK\r\n+QUEUED\r\n*1\r\n" + helloMap + helloMap, "proto 3, db 0"},
	{"not done in RESP3", "HELLO 3\nMULTI\nSUBSCRIBE a\nEXEC", helloMap + "+OK\r\n+QUEUED\r\n_\r\n", "proto 3, db 0"},
	{"subscribe in multi", "MULTI\nSUBSCRIBE a b\nEXEC", "+OK\r\n+QUEUED\r\n*1\r\n" + acks2("subscribe", "a", 1),
		"proto 2, db 0, multi, stream, 1 owed"},

	{"reset", "HELLO 3 AUTH u p\nSELECT 3\nMULTI\nRESET", helloMap + "+OK\r\n+OK\r\n+RESET\r\n", "proto 2, db 0"},
	{"reset refused", "SELECT 3\nRESET x", "+OK\r\n-ERR wrong number of arguments for 'reset' command\r\n",
		"proto 2, db 3"},
	{"reset of subscriptions", "SUBSCRIBE a\nRESET", acks2("subscribe", "a", 1) + "+RESET\r\n", "proto 2, db 0"},
	{"reset of monitor", "MONITOR\nRESET", "+OK\r\n+1339518083.107412 [0 127.0.0.1:60866] \"GET\" \"x\"\r\n+RESET\r\n",
		"proto 2, db 0"},

	{"subscribe", "SUBSCRIBE a", acks2("subscribe", "a", 1), "proto 2, db 0, 1 subscriptions, [1 0 0]"},
	{"subscribe to some", "SUBSCRIBE a b c", acks2("subscribe", "a", 1) + acks2("subscribe", "b", 2),
		"proto 2, db 0, 2 subscriptions, [2 0 0], 1 owed"},
	{"twice the same", "SUBSCRIBE a a", acks2("subscribe", "a", 1) + acks2("subscribe", "a", 1),
		"proto 2, db 0, 1 subscriptions, [1 0 0]"},
	{"three families", "SUBSCRIBE a\nPSUBSCRIBE p\nSSUBSCRIBE s t",
		acks2("subscribe", "a", 1) + acks2("psubscribe", "p", 2) + acks2("ssubscribe", "s", 1) +
			acks2("ssubscribe", "t", 2),
		"proto 2, db 0, 2 subscriptions, [1 1 2]"},
	{"subscribe refused", "SUBSCRIBE a b", "-NOPERM x\r\n", "proto 2, db 0"},
	{"subscribe without channels", "SUBSCRIBE", "-ERR wrong number of arguments\r\n", "proto 2, db 0"},
	{"unsubscribe", "SUBSCRIBE a b\nUNSUBSCRIBE a", acks2("subscribe", "a", 1) + acks2("subscribe", "b", 2) +
		acks2("unsubscribe", "a", 1), "proto 2, db 0, 1 subscriptions, [1 0 0]"},
	{"unsubscribe from all", "SUBSCRIBE a b\nPSUBSCRIBE p\nUNSUBSCRIBE\nPING",
		acks2("subscribe", "a", 1) + acks2("subscribe", "b", 2) + acks2("psubscribe", "p", 3) +
			acks2("unsubscribe", "a", 2) + acks2("unsubscribe", "b", 1),
		"proto 2, db 0, 1 subscriptions, [0 1 0], 1 owed"},
	{"unsubscribe from all, half told", "SUBSCRIBE a b\nUNSUBSCRIBE", acks2("subscribe", "a", 1) + acks2("subscribe",
		"b", 2) + acks2("unsubscribe", "a", 1),
		"proto 2, db 0, 1 subscriptions, [1 0 0], 1 owed"},
	{"unsubscribe from none", "UNSUBSCRIBE\nPUNSUBSCRIBE\nSUNSUBSCRIBE",
		strings.Repeat("*3\r\n$11\r\nunsubscribe\r\n$-1\r\n:0\r\n", 1) +
			"*3\r\n$12\r\npunsubscribe\r\n$-1\r\n:0\r\n*3\r\n$12\r\nsunsubscribe\r\n$-1\r\n:0\r\n", "proto 2, db 0"},
	{"unsubscribe from another", "SUBSCRIBE a\nUNSUBSCRIBE x y",
		acks2("subscribe", "a", 1) + acks2("unsubscribe", "x", 1) + acks2("unsubscribe", "y", 1),
		"proto 2, db 0, 1 subscriptions, [1 0 0]"},
	{"messages between", "SUBSCRIBE a\nPING\nSUBSCRIBE b",
		acks2("subscribe", "a", 1) + aMessage + "*2\r\n$4\r\npong\r\n$0\r\n\r\n" + aMessage +
			acks2("subscribe", "b", 2) + aMessage,
		"proto 2, db 0, 2 subscriptions, [2 0 0]"},
	{"a list that looks like an ack", "LRANGE l 0 -1\nPING", acks2("subscribe", "a", 1), "proto 2, db 0, 1 owed"},
	{"a list that looks like a message", "SUBSCRIBE a\nUNSUBSCRIBE\nLRANGE l 0 -1",
		acks2("subscribe", "a", 1) + acks2("unsubscribe", "a", 0) + aMessage, "proto 2, db 0"},
	{"in RESP3", "HELLO 3\nSUBSCRIBE a b\nGET x\nUNSUBSCRIBE",
		helloMap + aPush + acks3("subscribe", "a", 1) + aPush + acks3("subscribe", "b", 2) + "$1\r\nv\r\n" +
			acks3("unsubscribe", "b", 1),
		"proto 3, db 0, 1 subscriptions, [1 0 0], 1 owed"},
	{"in RESP3 a list is a list", "HELLO 3\nSUBSCRIBE a\nLRANGE l 0 -1",
		helloMap + acks3("subscribe", "a", 1) + aMessage, "proto 3, db 0, 1 subscriptions, [1 0 0]"},
	{"in RESP3, told unasked", "HELLO 3\nSSUBSCRIBE s\nSUBSCRIBE a",
		helloMap + acks3("ssubscribe", "s", 1) + acks3("sunsubscribe", "s", 0), "proto 3, db 0, 1 owed"},
	{"back to RESP2", "HELLO 3\nSUBSCRIBE a\nHELLO 2", helloMap + acks3("subscribe", "a", 1) + helloArray + aMessage,
		"proto 2, db 0, 1 subscriptions, [1 0 0]"},
	{"pushes are no answers", "HELLO 3\nGET a\nGET b", helloMap + aPush + aPush + "_\r\n" + aPush, "proto 3, db 0, 1 owed"},

	{"monitor", "MONITOR", "+OK\r\n+1339518083.107412 [0 127.0.0.1:60866] \"GET\" \"x\"\r\n", "proto 2, db 0, monitoring"},
	{"monitor refused", "MONITOR", "-NOPERM x\r\n", "proto 2, db 0"},
	{"answers to a monitor", "MONITOR\nPING\nGET a",
		"+OK\r\n+1339518083.107412 [0 lua] \"GET\" \"x\"\r\n+PONG\r\n+1.5 [0 127.0.0.1:60866] \"GET\"\r\n",
		"proto 2, db 0, monitoring, 1 owed"},
	{"numbers to a monitor", "MONITOR\nEVAL a 0\nEVAL b 0", "+OK\r\n+1.5 GET\r\n+12\r\n", "proto 2, db 0, monitoring"},

	{"psync", "PSYNC ? -1", "+FULLRESYNC 8371445ee47bca4e8de20ff3a2 0\r\n$5\r\nREDIS", "proto 2, db 0, stream, 1 owed"},
	{"sync", "PING\nSYNC", "+PONG\r\n\n\n$5\r\nREDIS", "proto 2, db 0, stream, 1 owed"},
	{"sync refused", "SYNC\nPING", "-NOMASTERLINK x\r\n+PONG\r\n", "proto 2, db 0"},
	{"no RESP at all", "GET a\nGET b", "HTTP/1.1 200 OK\r\n\r\n", "proto 2, db 0, stream, 2 owed"},

	{"quit", "QUIT", "+OK\r\n", "proto 2, db 0, quitting"},
	{"quit in multi", "MULTI\nQUIT", "+OK\r\n+OK\r\n", "proto 2, db 0, multi, quitting"},
	{"shutdown refused", "SHUTDOWN", "-ERR Errors trying to SHUTDOWN. Check logs.\r\n", "proto 2, db 0"},
	{"shutdown aborted", "SHUTDOWN ABORT", "+OK\r\n", "proto 2, db 0"},
}

func TestState(t *testing.T) {
	for _, c := range stateCases {
		for _, whole := range []bool{true, false} {
			l := newTestTracker()
			l.expectReplies(c.sent)
			l.feed(c.replies, whole)
			if got := l.String(); got != c.want {
				t.Errorf("%s, whole: %v: got %q, want %q", c.name, whole, got, c.want)
			}
		}
	}
}

// replylessCases lists the states after commands without replies.
var replylessCases = []struct{ sent, replies, want string }{
	{"PING", "", "proto 2, db 0"},
	{"SELECT 3", "", "proto 2, db 0, db?"},
	{"HELLO 3", "", "proto 2, db 0, proto?"},
	{"AUTH p", "", "proto 2, db 0, renamed"},
	{"SELECT 3\nRESET", "", "proto 2, db 0"},
	{"MULTI", "", "proto 2, db 0, stream"},
	{"MONITOR", "", "proto 2, db 0, stream"},
	{"SUBSCRIBE a b", acks2("subscribe", "a", 1) + acks2("subscribe", "b", 2),
		"proto 2, db 0, 1 subscriptions, [0 0 0], stream"},
	{"UNSUBSCRIBE\nRESET", "", "proto 2, db 0, 1 subscriptions, [0 0 0], stream"},
}

func TestStateWithoutReplies(t *testing.T) {
	for _, c := range replylessCases {
		l := newTestTracker()
		if l.repliesOff = true; c.sent != "PING" {
			l.expectReplies(c.sent)
		}
		l.feed(c.replies, true)
		if got := l.String(); got != c.want {
			t.Errorf("%s: got %q, want %q", c.sent, got, c.want)
		}
	}
}

// TestDisableRepliesOfSubscribers checks that the state of a client is unknown if it turns replies
// off while messages look like replies. In RESP3 messages do not look like replies.
func TestDisableRepliesOfSubscribers(t *testing.T) {
	for sent, replies := range map[string]struct {
		text   string
		stream bool
	}{
		"GET a": {"$-1\r\n", false}, "MONITOR": {"+OK\r\n", true},
		"HELLO 3\nSUBSCRIBE a": {helloMap + acks3("subscribe", "a", 1), false},
		"HELLO 3\nSUBSCRIBE a\nMULTI\nHELLO 2\nEXEC": {helloMap + acks3("subscribe", "a",
			1) + "+OK\r\n+QUEUED\r\n*1\r\n" + helloArray, true},
	} {
		l := newTestTracker()
		l.expectReplies(sent)
		l.feed(replies.text, true)
		if l.State.DisableReplies(); l.State.Stream != replies.stream {
			t.Errorf("%s: %s", sent, l.String())
		}
	}
	l := newTestTracker()
	l.expectReplies("HELLO 3")
	l.feed(helloMap, true)
	l.repliesOff = true
	l.expectReplies("SUBSCRIBE a")
	l.feed(acks3("subscribe", "a", 1), true)
	if got := l.String(); got != "proto 3, db 0, 1 subscriptions, [1 0 0]" {
		t.Errorf("subscribed in silence, in RESP3: %s", got)
	}
	if l.expectReplies("HELLO 2"); !l.State.Stream {
		t.Error("it may speak RESP2 now, and its state is known")
	}
}

// TestTrackerRemovesInternalReplies checks that only the replies to internal commands are removed
// from the stream, however it is split.
func TestTrackerRemovesInternalReplies(t *testing.T) {
	before, internalReply, after := "$5\r\n+OK\r\n\r\n", "*2\r\n$1\r\nx\r\n|1\r\n+a\r\n+b\r\n:1\r\n", ":7\r\n"
	stream := before + aPush + internalReply + aPush + after
	for at := range len(stream) + 1 {
		l := newTestTracker()
		l.State.Proto = 3
		l.expectReplies("GET a")
		l.AwaitedReplies.Add(ExpectedReply{Kind: InternalCommand, N: 1})
		l.expectReplies("INCR b")
		passed := l.filter(stream[:at]) + l.filter(stream[at:])
		if want := before + aPush + aPush + after; passed != want || len(l.answers) != 2 || l.answers[0] != internalReply {
			t.Fatalf("cut at %d: passed %q, asked %q", at, passed, l.answers)
		}
		if got := l.String(); got != "proto 3, db 0" {
			t.Errorf("cut at %d: %s", at, got)
		}
	}
}

// TestErrorWithoutPendingCommand checks that an error before any command is not taken as the reply
// to the next command.
func TestErrorWithoutPendingCommand(t *testing.T) {
	const maxClientsReply = "-ERR max number of clients reached\r\n"
	l := newTestTracker()
	if got := l.filter(maxClientsReply); got != maxClientsReply || !l.State.Stream {
		t.Errorf("the client gets %q; more comes than answers: %v", got, l.State.Stream)
	}
	l = newTestTracker()
	l.expectReplies("GET a")
	if got := l.filter(maxClientsReply); got != maxClientsReply || l.State.Stream {
		t.Errorf("as an answer the client gets %q; more comes than answers: %v", got, l.State.Stream)
	}
}

// TestTrackerAfterDisconnection checks that only the count of changes of user outlives a
// connection.
func TestTrackerAfterDisconnection(t *testing.T) {
	l := newTestTracker()
	l.expectReplies("AUTH p\nSELECT 3\nMULTI\nGET a")
	l.feed("+OK\r\n+OK\r\n+OK\r\n+QUE", true)
	if l.Settled() || !l.InsideReply() || l.InsideInternalReply() {
		t.Error("it is not known that a reply has begun")
	}
	l.RecordDisconnect(5)
	l.Begin()
	if got := l.String(); got != "proto 2, db 5" || l.State.UserChanges != 1 || !l.Settled() {
		t.Errorf("%s, identity %d", got, l.State.UserChanges)
	}
}

// TestCheckCanAsk checks that CheckCanAsk returns the reason if the proxy cannot send an internal
// command.
func TestCheckCanAsk(t *testing.T) {
	for sent, replies := range map[string]string{
		"MULTI": "+OK\r\n", "MONITOR": "+OK\r\n", "SYNC": "$1", "SUBSCRIBE a": acks2("subscribe", "a", 1),
	} {
		l := newTestTracker()
		if err := l.State.CheckCanAsk(); err != nil {
			t.Error(err)
		}
		l.expectReplies(sent)
		if l.feed(replies, true); l.State.CheckCanAsk() == nil {
			t.Errorf("after %s something can be asked", sent)
		}
	}
}

func TestAwaited(t *testing.T) {
	var a AwaitedReplies
	a.AddPlain(2)
	a.AddPlain(3)
	a.Add(ExpectedReply{Kind: InternalCommand, N: 1})
	a.Add(ExpectedReply{Kind: Subscribe, N: 3})
	a.AddPlain(1)
	if got := a.PendingCount(); got != 5+3+1 || a.EntryCount() != 4 || !a.HasIrreplaceable() {
		t.Errorf("%d owed, %+v", got, a.pendingEntries())
	}
	a.CancelLast()
	a.CancelLast()
	if got := a.PendingCount(); got != 5 || a.HasIrreplaceable() {
		t.Errorf("%d owed, %+v", got, a.pendingEntries())
	}
	a = AwaitedReplies{}
	a.CancelLast()
	a.AddPlain(2)
	if a.CancelLast(); a.PendingCount() != 1 || a.Empty() {
		t.Errorf("%+v", a.pendingEntries())
	}
}

// TestAwaitedQueue checks the queue against a slice, in random orders of operations.
func TestAwaitedQueue(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var a AwaitedReplies
	var want []ExpectedReply
	for range 100_000 {
		switch n := random.IntN(10); {
		case n < 5:
			e := ExpectedReply{Kind: Kind(1 + random.IntN(int(Untrackable))), N: 1}
			a.Add(e)
			want = append(want, e)
		case n < 6:
			if a.CancelLast(); len(want) > 0 {
				want = want[:len(want)-1]
			}
		case len(want) > 0:
			a.removeReply()
			want = want[1:]
		}
		kind := Kind(random.IntN(int(Untrackable) + 1))
		has := slices.ContainsFunc(want, func(e ExpectedReply) bool { return e.Kind == kind })
		if !slices.Equal(a.pendingEntries(), want) || a.Has(kind) != has || a.Empty() != (len(want) == 0) {
			t.Fatalf("got %v, want %v", a.pendingEntries(), want)
		}
	}
}

// TestMarkedReply checks that a marked reply is pending until it and all earlier replies have
// arrived, no matter which replies follow.
func TestMarkedReply(t *testing.T) {
	tracker := NewTracker(0, false)
	a := &tracker.AwaitedReplies
	if a.Mark(); a.HasMarked() {
		t.Error("nothing is pending")
	}
	a.AddPlain(2)
	a.Mark()
	a.AddPlain(3)
	a.Add(ExpectedReply{Kind: InternalCommand, N: 1})
	for i, reply := range []string{"+OK\r\n", "$-1\r\n", ":1\r\n"} {
		if a.HasMarked() != (i < 2) {
			t.Errorf("after %d replies: %v", i, a.HasMarked())
		}
		if _, err := tracker.Next([]byte(reply)); err != nil {
			t.Fatal(err)
		}
	}
	a.Mark()
	if a.CancelLast(); !a.HasMarked() || a.PendingCount() != 2 {
		t.Errorf("%+v", a)
	}
	a.CancelLast()
	if a.CancelLast(); a.HasMarked() {
		t.Errorf("%+v", a)
	}
}
