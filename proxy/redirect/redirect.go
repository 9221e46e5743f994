package redirect

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"redlock-proxy/commands/catalog/syntax"
)

// RetryError is the error that a client gets in place of a redirect. The upstream has not run the
// command, and client libraries retry on TRYAGAIN.
const RetryError = "-TRYAGAIN upstream redirect withheld: the target of the redirect does not know the lock keys; try again\r\n"

// StripRedirects returns a CLIENT command without options that ask for redirects; it returns other
// commands unchanged. It replaces MAINT_NOTIFICATIONS, which announces other servers by MOVING
// messages, by an unknown subcommand. Clients work without these messages. It replaces the
// capability redirect by an unknown capability, which servers ignore. If the proxy refused that
// capability, clients that require it would not connect.
func StripRedirects(words [][]byte) (stripped [][]byte, changed bool) {
	if len(words) < 2 || !equalWord(words[0], "client") {
		return words, false
	}
	stripped = slices.Clone(words)
	if equalWord(words[1], "maint_notifications") {
		stripped[1] = []byte("MAINT_NOTIFICATIONS-IS-NOT-FOR-LOCK-KEYS")
		return stripped, true
	}
	for i := 2; i < len(words) && equalWord(words[1], "capa"); i++ {
		if equalWord(words[i], "redirect") {
			stripped[i], changed = []byte("none"), true
		}
	}
	return stripped, changed
}

// equalWord compares words as servers do: a zero byte ends a word.
func equalWord(word []byte, name string) bool { return syntax.LowerCString(word) == name }

// redirectErrors holds the errors from which clients take an address. harmlessPushes holds the
// kinds of pushes that contain no address; all other kinds may contain one.
var (
	redirectErrors = []string{"MOVED", "ASK", "REDIRECT"}
	harmlessPushes = []string{
		"message", "pmessage", "smessage", "subscribe", "unsubscribe", "psubscribe",
		"punsubscribe", "ssubscribe", "sunsubscribe",
		"invalidate", "tracking-redir-broken", "server-cpu-usage",
	}
)

// maxHead limits how many bytes of a reply are withheld until its kind is known. maxWord is the
// maximum length of the name of a push.
const maxHead, maxWord = 64, 32

// maxRedirect limits the length of a redirect that is translated. Longer redirects name no node.
const maxRedirect = 1024

// Nodes translates the redirects of a cluster's node.
type Nodes interface {
	// TranslateRedirect returns the text of a redirect that leads to the same node through the
	// proxy. known is false if the redirect names no known node.
	TranslateRedirect(text string) (translated string, known bool)
	// ReportClusterDown is called for each error by which the node reports that the cluster is
	// down.
	ReportClusterDown()
}

// clusterDown is the first word of the errors for which Filter calls ReportClusterDown.
const clusterDown = "CLUSTERDOWN"

// Filter finds redirects in an upstream's bytes, in pieces of any size. The zero value is disabled.
type Filter struct {
	// Enabled lets MustFilter return true. If it is not set, no reply needs the filter.
	Enabled bool
	// Nodes translates redirects. If it is nil, or does not know the node, the client gets
	// RetryError in place of the redirect.
	Nodes        Nodes
	head         []byte // the beginning of the current reply, while its kind is unknown
	kindKnown    bool
	redirectKind string // the kind of the current reply, if it is a redirect
	redirect     []byte // the redirect, up to maxRedirect
	elements     elementFilter
}

// MustFilter reports whether a reply with this first byte must be passed to Filter.
func (f *Filter) MustFilter(first byte) bool {
	return f.Enabled && (first == '-' || first == '>' || first == '!')
}

// Begin resets the filter for a new reply or connection.
func (f *Filter) Begin() { *f = Filter{Enabled: f.Enabled, Nodes: f.Nodes} }

// Filter returns the bytes that the client gets in place of the next piece of a reply: none while
// the kind is unknown. At the end of a redirect that is not translated, kind is its kind, such as
// MOVED.
func (f *Filter) Filter(piece []byte, ended bool) (replacement []byte, kind string) {
	if !f.kindKnown {
		f.head = append(f.head, piece...)
		word, known := kindOf(f.head)
		if f.kindKnown = known || ended || len(f.head) > maxHead; !f.kindKnown {
			return nil, ""
		}
		piece, f.head = f.head, nil
		if isRedirect(piece[0], word) {
			f.redirectKind = string(piece[:1]) + word
		}
		if f.Nodes != nil && word == clusterDown {
			f.Nodes.ReportClusterDown()
		}
	}
	redirectKind := f.redirectKind
	if redirectKind != "" && len(f.redirect) <= maxRedirect {
		f.redirect = append(f.redirect, piece...)
	}
	redirect := f.redirect
	if ended {
		f.Begin()
	}
	switch {
	case redirectKind == "":
		return piece, ""
	case !ended:
		return nil, ""
	case redirectKind[0] == '>':
		return nil, cmp.Or(redirectKind[1:], "unknown message")
	case !namesAddress(redirect):
		return redirect, ""
	}
	if translated := f.translate(redirect); translated != nil {
		return translated, ""
	}
	return []byte(RetryError), redirectKind[1:]
}

// namesAddress reports whether a redirect may name an address. A script can return an error such as
// "ASK me later", which sends no client to another server.
func namesAddress(redirect []byte) bool {
	return len(redirect) > maxRedirect || bytes.IndexByte(redirect, ':') >= 0
}

// translate returns a redirect that leads to the same node through the proxy, or nil.
func (f *Filter) translate(redirect []byte) []byte {
	text, found := bytes.CutSuffix(redirect, []byte("\r\n"))
	if !found || f.Nodes == nil || len(redirect) > maxRedirect {
		return nil
	}
	long := text[0] == '!'
	if long {
		_, text, _ = bytes.Cut(text, []byte("\r\n"))
	} else {
		text = text[1:]
	}
	translated, known := f.Nodes.TranslateRedirect(string(text))
	switch {
	case !known:
		return nil
	case long:
		return fmt.Appendf(nil, "!%d\r\n%s\r\n", len(translated), translated)
	}
	return fmt.Appendf(nil, "-%s\r\n", translated)
}

// Replace returns the bytes that a client gets in place of a whole reply and, if it is a redirect
// that is not translated, its kind. translator is nil if the upstream is no cluster.
func Replace(reply []byte, translator Nodes) (replacement []byte, kind string) {
	f := Filter{Enabled: true, Nodes: translator}
	if len(reply) == 0 || !f.MustFilter(reply[0]) {
		return reply, ""
	}
	return f.Filter(reply, true)
}

// isRedirect reports whether a reply of this type and first word is a redirect.
func isRedirect(kind byte, word string) bool {
	if kind == '>' {
		return !slices.Contains(harmlessPushes, word)
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
