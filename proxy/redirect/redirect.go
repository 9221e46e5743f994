package redirect

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"

	"redlock-proxy/commands/catalog/syntax"
)

// Retry is the error that a client gets in place of a redirect. The upstream has done nothing;
// clients that retry do so on TRYAGAIN.
const Retry = "-TRYAGAIN upstream redirect withheld: the other server does not know the lock keys; try again\r\n"

// StripRedirects returns a CLIENT command without options that ask for redirects; it returns other
// commands unchanged. MAINT_NOTIFICATIONS, which announces servers by MOVING, becomes a subcommand
// that no server has: clients manage without. The capability redirect becomes one that no server
// knows. Servers ignore unknown capabilities, whereas clients that require redirect would not
// connect after a refusal.
func StripRedirects(words [][]byte) (other [][]byte, changed bool) {
	if len(words) < 2 || !equalWord(words[0], "client") {
		return words, false
	}
	other = slices.Clone(words)
	if equalWord(words[1], "maint_notifications") {
		other[1] = []byte("MAINT_NOTIFICATIONS-IS-NOT-FOR-LOCK-KEYS")
		return other, true
	}
	for i := 2; i < len(words) && equalWord(words[1], "capa"); i++ {
		if equalWord(words[i], "redirect") {
			other[i], changed = []byte("none"), true
		}
	}
	return other, changed
}

// equalWord compares words as the servers do, for which a zero byte ends a word.
func equalWord(word []byte, name string) bool { return syntax.Folded(word) == name }

// redirectErrors holds the errors from which clients take an address. messages holds the kinds of
// pushes that contain no address; any other kind may contain one.
var (
	redirectErrors = []string{"MOVED", "ASK", "REDIRECT"}
	messages       = []string{
		"message", "pmessage", "smessage", "subscribe", "unsubscribe", "psubscribe",
		"punsubscribe", "ssubscribe", "sunsubscribe",
		"invalidate", "tracking-redir-broken", "server-cpu-usage",
	}
)

// maxHead limits how many bytes of a reply are withheld until its kind is known. No known kind of
// message is longer than maxWord bytes.
const maxHead, maxWord = 64, 32

// Filter finds redirects in an upstream's bytes, in any pieces. The zero value finds none.
type Filter struct {
	// On enables the filter.
	On       bool
	held     []byte // the beginning of the current reply, while its kind is unknown
	known    bool
	redirect string // the kind of the current reply, if it is a redirect
}

// Looks reports whether a reply with this first byte must be given to Take.
func (f *Filter) Looks(first byte) bool {
	return f.On && (first == '-' || first == '>' || first == '!')
}

// Begin resets the filter for a new reply or connection.
func (f *Filter) Begin() { *f = Filter{On: f.On} }

// Take takes the next piece of a reply, and returns what the client gets in its place: nothing,
// while the kind is unknown. At the end of a redirect, turned is its kind, such as MOVED.
func (f *Filter) Take(piece []byte, ended bool) (instead []byte, turned string) {
	if !f.known {
		f.held = append(f.held, piece...)
		word, known := kindOf(f.held)
		if f.known = known || ended || len(f.held) > maxHead; !f.known {
			return nil, ""
		}
		piece, f.held = f.held, nil
		if isRedirect(piece[0], word) {
			f.redirect = string(piece[:1]) + word
		}
	}
	what := f.redirect
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

// Replace returns what a client gets in place of a whole reply and, if it is a redirect, its kind.
func Replace(reply []byte) (instead []byte, turned string) {
	f := Filter{On: true}
	if len(reply) == 0 || !f.Looks(reply[0]) {
		return reply, ""
	}
	return f.Take(reply, true)
}

// isRedirect reports whether a reply of this type and first word is a redirect.
func isRedirect(kind byte, word string) bool {
	if kind == '>' {
		return !slices.Contains(messages, word)
	}
	return slices.Contains(redirectErrors, word)
}

// kindOf returns the first word of an error or push, if it has arrived.
func kindOf(head []byte) (word string, known bool) {
	rest := head[1:]
	if head[0] != '-' { // skips the line with the length
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
