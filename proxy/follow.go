package proxy

import (
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
	"client": slotPlain,
	"watch":  slotPlain, "readonly": slotPlain, "asking": slotPlain,
}

// followedName gives the name of such a command in lower case, or "".
func followedName(name []byte) string {
	if len(name) > len("punsubscribe") {
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

// slotFor says what awaits the answer to a followed command.
func slotFor(name string, words [][]byte) slot {
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
	case slotSubscribe:
		s.family = familyOf(name)
		if s.n = len(words) - 1; s.n == 0 && strings.Contains(name, "un") {
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
