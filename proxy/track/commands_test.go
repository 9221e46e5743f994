package track

import (
	"bytes"
	"strings"
	"testing"

	"redlock-proxy/commands/catalog/spec"
)

func TestStateCommandName(t *testing.T) {
	for c := range spec.All() {
		want := ""
		if c.Effect != spec.NoEffect {
			want = c.Name
		}
		if got := StateCommandName([]byte(strings.ToUpper(c.Name))); got != want {
			t.Errorf("%s: %q", c.Name, got)
		}
	}
	for _, name := range []string{"", "get", "selectt", "hell", "\xe2\x84\xaa", "punsubscribes",
		strings.Repeat("s", 64), "SELECT\x00"} {
		if got := StateCommandName([]byte(name)); got != "" {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestExpectedReplyFor(t *testing.T) {
	for line, want := range map[string]ExpectedReply{
		"HELLO":                       {Kind: Hello, N: 1},
		"HELLO 3 AUTH u p":            {Kind: Hello, N: 1, Arg: 1},
		"HELLO 3 SETNAME x auth u p":  {Kind: Hello, N: 1, Arg: 1},
		"AUTH p":                      {Kind: Auth, N: 1},
		"RESET":                       {Kind: Reset, N: 1},
		"SELECT 7":                    {Kind: Select, N: 1, Arg: 7},
		"SELECT":                      {Kind: Select, N: 1},
		"SELECT x":                    {Kind: Select, N: 1},
		"MULTI":                       {Kind: Multi, N: 1},
		"EXEC":                        {Kind: Exec, N: 1},
		"DISCARD":                     {Kind: Discard, N: 1},
		"SUBSCRIBE a":                 {Kind: Subscribe, N: 1, SubscriptionKind: Channels},
		"SUBSCRIBE a b c":             {Kind: Subscribe, N: 3, SubscriptionKind: Channels},
		"SUBSCRIBE":                   {Kind: Subscribe, N: 0, SubscriptionKind: Channels},
		"PSUBSCRIBE a b":              {Kind: Subscribe, N: 2, SubscriptionKind: Patterns},
		"SSUBSCRIBE a b":              {Kind: Subscribe, N: 2, SubscriptionKind: Shards},
		"UNSUBSCRIBE":                 {Kind: Subscribe, N: -1, SubscriptionKind: Channels},
		"UNSUBSCRIBE a b":             {Kind: Subscribe, N: 2, SubscriptionKind: Channels},
		"PUNSUBSCRIBE":                {Kind: Subscribe, N: -1, SubscriptionKind: Patterns},
		"SUNSUBSCRIBE":                {Kind: Subscribe, N: -1, SubscriptionKind: Shards},
		"SUNSUBSCRIBE a":              {Kind: Subscribe, N: 1, SubscriptionKind: Shards},
		"MONITOR":                     {Kind: Monitor, N: 1},
		"SYNC":                        {Kind: Sync, N: 1},
		"PSYNC ? -1":                  {Kind: Sync, N: 1},
		"QUIT":                        {Kind: Quit, N: 1, Arg: 1},
		"SHUTDOWN":                    {Kind: Quit, N: 1},
		"HELLO 3 setname x":           {Kind: Hello, N: 1},
		"CLIENT":                      {Kind: Plain, N: 1},
		"CLIENT SETNAME x":            {Kind: Plain, N: 1},
		"WATCH a":                     {Kind: Watch, N: 1},
		"UNWATCH":                     {Kind: Unwatch, N: 1},
		"REPLCONF listening-port 123": {Kind: Plain, N: 1},
	} {
		words := bytes.Fields([]byte(line))
		if got := ExpectedReplyFor(StateCommandName(words[0]), words, len(words)); got != want {
			t.Errorf("%s: got %+v, want %+v", line, got, want)
		}
	}
	if got := ExpectedReplyFor("subscribe", bytes.Fields([]byte("SUBSCRIBE a")), 1001); got.N != 1000 {
		t.Errorf("the beginning of a long SUBSCRIBE: %+v", got)
	}
}

func TestParseReplyMode(t *testing.T) {
	for line, want := range map[string]struct {
		mode ReplyMode
		ok   bool
	}{
		"CLIENT REPLY ON":      {ReplyOn, true},
		"client reply off":     {ReplyOff, true},
		"Client Reply Skip":    {ReplySkip, true},
		"CLIENT REPLY":         {},
		"CLIENT REPLY x":       {},
		"CLIENT REPLY OFF x":   {},
		"CLIENT SETNAME OFF":   {},
		"CONFIG REPLY OFF":     {},
		"CLIENT":               {},
		"CLIENT REPLY OFF\x00": {ReplyOff, true}, "CLIENT REPLY\x00 OFF": {},
	} {
		if mode, ok := ParseReplyMode(bytes.Fields([]byte(line))); mode != want.mode || ok != want.ok {
			t.Errorf("%s: %v, %v", line, mode, ok)
		}
	}
}

func TestReplylessOf(t *testing.T) {
	for line, want := range map[string]Replyless{
		"REPLCONF ACK 1":                    NeverAnswered,
		"replconf ack 1":                    NeverAnswered,
		"REPLCONF ACK 1 x 1":                NeverAnswered,
		"REPLCONF GETACK *":                 NeverAnswered,
		"REPLCONF ACK":                      Answered,
		"REPLCONF GETACK * capa":            Answered,
		"REPLCONF x 1 ACK 1":                MaybeAnswered,
		"REPLCONF listening-port 1 ACK 2":   MaybeAnswered,
		"REPLCONF listening-port 1 ACK":     Answered,
		"REPLCONF listening-port 1":         Answered,
		"REPLCONF ip-address ack":           Answered,
		"REPLCONF":                          Answered,
		"CLIENT ACK 1":                      Answered,
		"REPLCONF capa eof capa psync2":     Answered,
		"REPLCONF rdb-only 1 ack 2 capa x ": MaybeAnswered,
	} {
		if got := ReplylessOf(bytes.Fields([]byte(line))); got != want {
			t.Errorf("%s: %v", line, got)
		}
	}
}

func TestMayBlock(t *testing.T) {
	for c := range spec.All() {
		if blocks := c.HasAny(spec.Blocks); MayBlock([]byte(c.Name)) != blocks ||
			MayBlock([]byte(strings.ToUpper(c.Name))) != blocks {
			t.Errorf("%s: it is said that it may block: %v", c.Name, !blocks)
		}
	}
	for _, name := range []string{"", "b", "GET", "BITCOUNT", "XADD", "WATCH", "BLPOPS"} {
		if MayBlock([]byte(name)) {
			t.Errorf("%s is taken for one that blocks", name)
		}
	}
}
