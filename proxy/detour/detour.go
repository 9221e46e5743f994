package detour

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"

	"redlock-proxy/commands/catalog/syntax"
)

// Retry is the error that a client gets in place of one that names another server. Nothing was
// done; clients that try again do so on TRYAGAIN.
const Retry = "-TRYAGAIN the upstream named another server for this command: redlock-proxy leads no client past its lock keys\r\n"

// Harmless is a CLIENT without what asks to be told of other servers; others are as they were. Of
// planned maintenance (MOVING and an address) the answer is that of a server which does not have
// that: clients do without. The capability to be redirected after failovers (-REDIRECT) is replaced
// by one that no server knows, and of such servers say nothing: clients that insist on it would not
// connect else.
func Harmless(words [][]byte) (other [][]byte, changed bool) {
	if len(words) < 2 || !is(words[0], "client") {
		return words, false
	}
	other = slices.Clone(words)
	if is(words[1], "maint_notifications") {
		other[1] = []byte("MAINT_NOTIFICATIONS-IS-NOT-FOR-LOCK-KEYS")
		return other, true
	}
	for i := 2; i < len(words) && is(words[1], "capa"); i++ {
		if is(words[i], "redirect") {
			other[i], changed = []byte("none"), true
		}
	}
	return other, changed
}

// is compares as the servers do, to which a zero byte ends a word.
func is(word []byte, name string) bool { return syntax.Folded(word) == name }

// errorsThatLead are the errors of which clients take an address. messages are the kinds of pushes
// that name none; of any other one it is not known.
var (
	errorsThatLead = []string{"MOVED", "ASK", "REDIRECT"}
	messages       = []string{
		"message", "pmessage", "smessage", "subscribe", "unsubscribe", "psubscribe", "punsubscribe", "ssubscribe", "sunsubscribe",
		"invalidate", "tracking-redir-broken", "server-cpu-usage",
	}
)

// maxHead is how much of a reply is held back at the most, in bytes, until it is known what it is.
// No kind of message that is known has maxWord bytes.
const maxHead, maxWord = 64, 32

// Filter finds replies that lead elsewhere in what an upstream sends, however that is cut into
// pieces. The zero value finds none.
type Filter struct {
	// On has it look.
	On    bool
	held  []byte // the beginning of the current reply, while it is not known what it is
	known bool
	leads string // what the current reply is, if it leads elsewhere
}

// Looks reports whether a reply that begins so must be given to Take.
func (f *Filter) Looks(first byte) bool {
	return f.On && (first == '-' || first == '>' || first == '!')
}

// Begin is for a new connection.
func (f *Filter) Begin() { *f = Filter{On: f.On} }

// Take takes the next piece of a reply, and returns what the client is to get in its place:
// nothing, as long as that is not known. With the end of one that leads elsewhere, turned is what
// it was, such as MOVED.
func (f *Filter) Take(piece []byte, ended bool) (instead []byte, turned string) {
	if !f.known {
		f.held = append(f.held, piece...)
		word, known := kindOf(f.held)
		if f.known = known || ended || len(f.held) > maxHead; !f.known {
			return nil, ""
		}
		piece, f.held = f.held, nil
		if leads(piece[0], word) {
			f.leads = string(piece[:1]) + word
		}
	}
	what := f.leads
	if ended {
		f.Begin()
	}
	switch {
	case what == "":
		return piece, ""
	case !ended:
		return nil, ""
	case what[0] == '>':
		return nil, cmp.Or(what[1:], "unknown message")
	}
	return []byte(Retry), what[1:]
}

// Turn is what a client is to get in the place of a whole reply, and, where that led elsewhere,
// what it was.
func Turn(reply []byte) (instead []byte, turned string) {
	f := Filter{On: true}
	if len(reply) == 0 || !f.Looks(reply[0]) {
		return reply, ""
	}
	return f.Take(reply, true)
}

// leads reports whether a reply of this kind, with this first word, leads elsewhere.
func leads(kind byte, word string) bool {
	if kind == '>' {
		return !slices.Contains(messages, word)
	}
	return slices.Contains(errorsThatLead, word)
}

// kindOf is the first word of an error or push, if so much of it has come.
func kindOf(head []byte) (word string, known bool) {
	rest := head[1:]
	if head[0] != '-' { // behind the line that says how long it is
		_, rest, known = bytes.Cut(rest, []byte("\r\n"))
		if !known {
			return "", false
		}
	}
	if head[0] == '>' {
		size, text, found := bytes.Cut(rest, []byte("\r\n"))
		word, _, known := bytes.Cut(text, []byte("\r\n"))
		if !found || !known || string(size) != "$"+strconv.Itoa(len(word)) {
			return "", false
		}
		if len(word) > maxWord {
			return "", true
		}
		return string(word), true
	}
	end := bytes.IndexAny(rest, " \r\n")
	if end < 0 {
		return "", false
	}
	return string(rest[:end]), true
}
