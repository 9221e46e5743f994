package proxy

import (
	"bytes"
	"strings"
	"testing"
)

func TestFollowedNames(t *testing.T) {
	for name := range followed {
		if got := followedName([]byte(strings.ToUpper(name))); got != name {
			t.Errorf("%s: %q", name, got)
		}
	}
	for _, name := range []string{"", "get", "selectt", "hell", "\xe2\x84\xaa", "punsubscribes", strings.Repeat("s", 64), "SELECT\x00"} {
		if got := followedName([]byte(name)); got != "" {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestSlotFor(t *testing.T) {
	for line, want := range map[string]slot{
		"HELLO":                       {kind: slotHello, n: 1},
		"HELLO 3 AUTH u p":            {kind: slotHello, n: 1, arg: 1},
		"HELLO 3 SETNAME x auth u p":  {kind: slotHello, n: 1, arg: 1},
		"AUTH p":                      {kind: slotAuth, n: 1},
		"RESET":                       {kind: slotReset, n: 1},
		"SELECT 7":                    {kind: slotSelect, n: 1, arg: 7},
		"SELECT":                      {kind: slotSelect, n: 1},
		"SELECT x":                    {kind: slotSelect, n: 1},
		"MULTI":                       {kind: slotMulti, n: 1},
		"EXEC":                        {kind: slotExec, n: 1},
		"DISCARD":                     {kind: slotDiscard, n: 1},
		"SUBSCRIBE a":                 {kind: slotSubscribe, n: 1, family: channels},
		"SUBSCRIBE a b c":             {kind: slotSubscribe, n: 3, family: channels},
		"SUBSCRIBE":                   {kind: slotSubscribe, n: 0, family: channels},
		"PSUBSCRIBE a b":              {kind: slotSubscribe, n: 2, family: patterns},
		"SSUBSCRIBE a b":              {kind: slotSubscribe, n: 2, family: shards},
		"UNSUBSCRIBE":                 {kind: slotSubscribe, n: -1, family: channels},
		"UNSUBSCRIBE a b":             {kind: slotSubscribe, n: 2, family: channels},
		"PUNSUBSCRIBE":                {kind: slotSubscribe, n: -1, family: patterns},
		"SUNSUBSCRIBE":                {kind: slotSubscribe, n: -1, family: shards},
		"SUNSUBSCRIBE a":              {kind: slotSubscribe, n: 1, family: shards},
		"MONITOR":                     {kind: slotMonitor, n: 1},
		"SYNC":                        {kind: slotStream, n: 1},
		"PSYNC ? -1":                  {kind: slotStream, n: 1},
		"QUIT":                        {kind: slotQuit, n: 1, arg: 1},
		"SHUTDOWN":                    {kind: slotQuit, n: 1},
		"CLIENT SETNAME x":            {kind: slotPlain, n: 1},
		"WATCH a":                     {kind: slotWatch, n: 1},
		"UNWATCH":                     {kind: slotUnwatch, n: 1},
		"REPLCONF listening-port 123": {kind: slotPlain, n: 1},
	} {
		words := bytes.Fields([]byte(line))
		if got := slotFor(followedName(words[0]), words, len(words)); got != want {
			t.Errorf("%s: got %+v, want %+v", line, got, want)
		}
	}
	if got := slotFor("subscribe", bytes.Fields([]byte("SUBSCRIBE a")), 1001); got.n != 1000 {
		t.Errorf("the beginning of a long SUBSCRIBE: %+v", got)
	}
}

func TestHush(t *testing.T) {
	for line, want := range map[string]struct {
		mode replySilence
		ok   bool
	}{
		"CLIENT REPLY ON":      {speaking, true},
		"client reply off":     {silentFromNow, true},
		"Client Reply Skip":    {silentOnce, true},
		"CLIENT REPLY":         {},
		"CLIENT REPLY x":       {},
		"CLIENT REPLY OFF x":   {},
		"CLIENT SETNAME OFF":   {},
		"CONFIG REPLY OFF":     {},
		"CLIENT":               {},
		"CLIENT REPLY OFF\x00": {},
	} {
		if mode, ok := hush(bytes.Fields([]byte(line))); mode != want.mode || ok != want.ok {
			t.Errorf("%s: %v, %v", line, mode, ok)
		}
	}
}

func TestAnswersNot(t *testing.T) {
	for line, want := range map[string]bool{
		"REPLCONF ACK 1":                    true,
		"replconf ack 1":                    true,
		"REPLCONF GETACK *":                 true,
		"REPLCONF listening-port 1 ACK 2":   true,
		"REPLCONF listening-port 1":         false,
		"REPLCONF ip-address ack":           false,
		"REPLCONF":                          false,
		"CLIENT ACK 1":                      false,
		"REPLCONF capa eof capa psync2":     false,
		"REPLCONF rdb-only 1 ack 2 capa x ": true,
	} {
		if got := answersNot(bytes.Fields([]byte(line))); got != want {
			t.Errorf("%s: %v", line, got)
		}
	}
}

func TestMayBlock(t *testing.T) {
	for name := range blockers {
		if !mayBlock([]byte(name)) || !mayBlock([]byte(strings.ToUpper(name))) {
			t.Errorf("%s is taken for one that does not block", name)
		}
	}
	for _, name := range []string{"", "b", "GET", "BITCOUNT", "XADD", "WATCH", "BLPOPS"} {
		if mayBlock([]byte(name)) {
			t.Errorf("%s is taken for one that blocks", name)
		}
	}
}
