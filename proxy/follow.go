package proxy

import (
	"context"
	"strconv"
	"strings"
)

// followed are the forwarded commands whose answers change what the proxy must
// know of the connection, or that are not answered in the ordinary way. The value
// is what awaits the answer of one without its arguments.
var followed = map[string]slotKind{
	"hello": slotHello, "auth": slotAuth, "reset": slotReset, "select": slotSelect,
	"multi": slotMulti, "exec": slotExec, "discard": slotDiscard,
	"subscribe": slotSubscribe, "psubscribe": slotSubscribe, "ssubscribe": slotSubscribe,
	"unsubscribe": slotSubscribe, "punsubscribe": slotSubscribe, "sunsubscribe": slotSubscribe,
	"monitor": slotMonitor, "sync": slotStream, "psync": slotStream,
	"quit": slotQuit, "shutdown": slotQuit,
	"client": slotPlain, "replconf": slotPlain,
	"watch": slotWatch, "unwatch": slotUnwatch, "readonly": slotPlain, "asking": slotPlain,
}

// followedInitials has, for each length of their names, a bit for each first
// letter: GET and SET need not be looked for.
var followedInitials = func() (bits [len("punsubscribe") + 1]uint32) {
	for name := range followed {
		bits[len(name)] |= 1 << (name[0] & 0x1f)
	}
	return bits
}()

// followedName gives the name of such a command in lower case, or "".
func followedName(name []byte) string {
	if len(name) == 0 || len(name) > len("punsubscribe") || followedInitials[len(name)]&(1<<(name[0]&0x1f)) == 0 {
		return ""
	}
	var lower [len("punsubscribe")]byte
	for i, b := range name {
		if 'A' <= b && b <= 'Z' {
			b += 'a' - 'A'
		}
		lower[i] = b
	}
	if _, ok := followed[string(lower[:len(name)])]; !ok {
		return ""
	}
	return string(lower[:len(name)])
}

// blockers are the forwarded commands that may wait for something else than the
// upstream's own work.
var blockers = map[string]bool{
	"blpop": true, "brpop": true, "brpoplpush": true, "blmove": true, "blmpop": true,
	"bzpopmin": true, "bzpopmax": true, "bzmpop": true,
	"xread": true, "xreadgroup": true, "wait": true, "waitaof": true,
}

// mayBlock reports whether a command is one of those.
func mayBlock(name []byte) bool {
	if len(name) == 0 {
		return false
	}
	switch name[0] | 0x20 {
	case 'b', 'w', 'x':
		return blockers[strings.ToLower(string(name))]
	}
	return false
}

// slotFor says what awaits the answer to a followed command of so many words, of
// which the first ones are given.
func slotFor(name string, words [][]byte, count int) slot {
	s := slot{kind: followed[name], n: 1}
	switch s.kind {
	case slotHello:
		for _, word := range words[1:] {
			if strings.EqualFold(string(word), "auth") {
				s.arg = 1
			}
		}
	case slotSelect:
		s.arg = selectedDB(words)
	case slotQuit:
		if name == "quit" {
			s.arg = 1
		}
	case slotSubscribe:
		s.family = familyOf(name)
		if s.n = count - 1; s.n == 0 && strings.Contains(name, "un") {
			s.n = -1
		}
	}
	return s
}

// selectedDB is the database of a SELECT. Where it is none, the answer is an error.
func selectedDB(words [][]byte) int {
	if len(words) < 2 {
		return 0
	}
	n, _ := strconv.Atoi(string(words[1]))
	return n
}

func familyOf(name string) family {
	switch name[0] {
	case 'p':
		return patterns
	case 's':
		if name[1] != 'u' || strings.HasPrefix(name, "sun") {
			return shards
		}
	}
	return channels
}

// hush says what a CLIENT REPLY asks for; ok is false for anything else.
func hush(words [][]byte) (mode replySilence, ok bool) {
	if len(words) != 3 || !strings.EqualFold(string(words[0]), "client") || !strings.EqualFold(string(words[1]), "reply") {
		return speaking, false
	}
	switch strings.ToLower(string(words[2])) {
	case "on":
		return speaking, true
	case "off":
		return silentFromNow, true
	case "skip":
		return silentOnce, true
	}
	return speaking, false
}

// answersNot reports whether Redis does not answer a command, unless it is queued
// in a transaction: a replica's acknowledgements.
func answersNot(words [][]byte) bool {
	if !strings.EqualFold(string(words[0]), "replconf") {
		return false
	}
	for i := 1; i < len(words); i += 2 {
		switch strings.ToLower(string(words[i])) {
		case "ack", "getack":
			return true
		}
	}
	return false
}

// follow forwards a command whose answer is learned from.
func (f *forwarding) follow(ctx context.Context, name string, words [][]byte) error {
	if err := f.relay.open(ctx); err != nil {
		return f.refuse(1, err)
	}
	if err := f.flush(); err != nil {
		return err
	}
	mode, silences := hush(words)
	s := slotFor(name, words, len(words))
	switch {
	case silences && mode != speaking, answersNot(words):
		return f.unanswered(ctx, mode)
	case silences:
		f.relay.silence = speaking
	case s.kind == slotReset && len(words) == 1 && f.relay.silence == silentFromNow:
		f.relay.silence = speaking
	}
	if f.count() == 0 {
		f.relay.unheard(s)
		f.relay.send(f.in.chunk())
		return nil
	}
	return f.sendWhole(s)
}

// unanswered forwards a command that is not answered, and that may silence those
// behind it. Where it is queued or refused, it is answered.
func (f *forwarding) unanswered(ctx context.Context, mode replySilence) error {
	if err := f.settle(ctx); err != nil {
		return err
	}
	state := f.relay.know()
	s := slot{kind: slotPlain}
	switch {
	case state.multi:
		s = slot{kind: slotOdd, n: 1}
	case state.restricted(), !f.loggedIn(ctx, state):
		s.n = f.count()
	case mode != speaking && f.relay.silence != silentFromNow:
		f.relay.silence = mode
	default:
		f.count()
	}
	return f.sendWhole(s)
}
