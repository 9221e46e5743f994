package script

import (
	"errors"
	"slices"
	"strings"

	"redlock-proxy/commands/catalog/syntax"
)

// knownFlags holds the flags that a script may declare in its first line: "#!lua
// flags=no-writes,allow-stale". Only no-writes has an effect. The other flags concern states that a
// server can have, but the proxy cannot.
var knownFlags = []string{noWrites, "allow-oom", "allow-stale", "no-cluster", "allow-cross-slot-keys"}

const noWrites = "no-writes"

// cutShebang removes the first line of a script if the line begins with #!. readOnly is true if the
// line declares no-writes. The source keeps the line break, so that line numbers are right.
func cutShebang(body string) (readOnly bool, source string, err error) {
	if !strings.HasPrefix(body, "#!") {
		return false, body, nil
	}
	line, _, hasLineEnd := strings.Cut(body, "\n")
	if !hasLineEnd || strings.Contains(line, "\x00") {
		return false, "", errors.New("ERR Invalid script shebang")
	}
	words, ok := splitWords(line)
	if !ok || len(words) == 0 {
		return false, "", errors.New("ERR Invalid engine in script shebang")
	}
	if words[0] != "#!lua" {
		return false, "", errors.New(syntax.OneLine("ERR Unexpected engine in script shebang: " + words[0]))
	}
	for _, word := range words[1:] {
		list, ok := strings.CutPrefix(word, "flags=")
		if !ok {
			return false, "", errors.New(syntax.OneLine("ERR Unknown lua shebang option: " + word))
		}
		for name := range strings.SplitSeq(list, ",") {
			if list != "" && !slices.Contains(knownFlags, name) {
				return false, "", errors.New(syntax.OneLine("ERR Unexpected flag in script shebang: " + name))
			}
			readOnly = readOnly || name == noWrites
		}
	}
	return readOnly, body[len(line):], nil
}

// splitWords splits a line as Redis splits its configuration: at blanks, with quotes and escapes.
// ok is false for unbalanced quotes.
func splitWords(line string) (words []string, ok bool) {
	for {
		line = strings.TrimLeft(line, blanks)
		if line == "" {
			return words, true
		}
		var word string
		if word, line, ok = cutWord(line); !ok {
			return nil, false
		}
		words = append(words, word)
	}
}

const blanks = " \t\n\v\f\r"

// cutWord returns the first word of a line. A blank must follow a closing quote.
func cutWord(line string) (word, rest string, ok bool) {
	var b strings.Builder
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case strings.IndexByte(blanks, c) >= 0:
			return b.String(), line[i:], true
		case c == '"' || c == '\'':
			n, closed := unquote(&b, line[i:], c)
			i += n
			if !closed || i < len(line) && strings.IndexByte(blanks, line[i]) < 0 {
				return "", "", false
			}
			return b.String(), line[i:], true
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), "", true
}

// unquote appends the text between quotes, and returns its length including the quotes.
func unquote(b *strings.Builder, s string, quote byte) (length int, closed bool) {
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == quote:
			return i + 1, true
		case s[i] == '\\' && quote == '\'' && i+1 < len(s) && s[i+1] == '\'':
			i++
			b.WriteByte('\'')
		case s[i] == '\\' && quote == '"' && i+3 < len(s) && s[i+1] == 'x' &&
			hexValue(s[i+2]) >= 0 && hexValue(s[i+3]) >= 0:
			b.WriteByte(byte(hexValue(s[i+2])<<4 | hexValue(s[i+3])))
			i += 3
		case s[i] == '\\' && quote == '"' && i+1 < len(s):
			i++
			if at := strings.IndexByte("nrtba", s[i]); at >= 0 {
				b.WriteByte("\n\r\t\b\a"[at])
			} else {
				b.WriteByte(s[i])
			}
		default:
			b.WriteByte(s[i])
		}
	}
	return len(s), false
}

// hexValue returns the value of a hexadecimal digit, or -1.
func hexValue(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c|0x20 >= 'a' && c|0x20 <= 'f':
		return int(c|0x20-'a') + 10
	}
	return -1
}
