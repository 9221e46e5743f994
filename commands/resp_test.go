package commands

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"testing"
)

// value is a reply: its type, its text or number, and its elements; of a map key, value, …
type value struct {
	kind byte
	text string
	kids []value
	raw  string
}

// readReplies parses the bytes that a server sent.
func readReplies(t *testing.T, sent string) (replies []value) {
	t.Helper()
	for rest := sent; rest != ""; {
		v, after, err := readValue(rest)
		if err != nil {
			t.Fatalf("no reply in RESP: %v in %.300q", err, sent)
		}
		replies, rest = append(replies, v), after
	}
	return replies
}

func readValue(s string) (v value, rest string, err error) {
	line, rest, found := strings.Cut(s, "\r\n")
	if !found || line == "" {
		return v, "", fmt.Errorf("no line: %.40q", s)
	}
	v = value{kind: line[0], text: line[1:]}
	switch v.kind {
	case '+', '-', ':', '_', '#', ',', '(':
	case '$', '=':
		rest, err = v.readBulk(rest)
	case '*', '~', '%', '>':
		rest, err = v.readKids(rest)
	default:
		err = fmt.Errorf("no type: %.40q", s)
	}
	v.raw = s[:len(s)-len(rest)]
	return v, rest, err
}

func (v *value) readBulk(s string) (rest string, err error) {
	n, err := strconv.Atoi(v.text)
	switch {
	case n == -1 && err == nil:
		v.kind, v.text = '_', ""
		return s, nil
	case err != nil || n < 0 || len(s) < n+2 || s[n:n+2] != "\r\n":
		return s, fmt.Errorf("no bulk of %q bytes: %.40q", v.text, s)
	}
	v.text = s[:n]
	return s[n+2:], nil
}

func (v *value) readKids(s string) (rest string, err error) {
	n, err := strconv.Atoi(v.text)
	if n == -1 && err == nil {
		v.kind, v.text = '_', ""
		return s, nil
	}
	if v.kind == '%' {
		n *= 2
	}
	for rest = s; n > 0 && err == nil; n-- {
		var kid value
		kid, rest, err = readValue(rest)
		v.kids = append(v.kids, kid)
	}
	return rest, err
}

// entry returns the value under a key of a map.
func (v value) entry(key string) (found value, ok bool) {
	for i := 0; i+1 < len(v.kids); i += 2 {
		if v.kids[i].text == key {
			return v.kids[i+1], true
		}
	}
	return value{}, false
}

// unlike describes how a reply of the proxy differs from a reply of Redis; empty if it does not. It
// ignores strings and numbers: the types must be the same, and a map must have no key that Redis'
// map lacks. An empty array equals any other array.
func unlike(ours, theirs value) string {
	switch {
	case ours.kind != theirs.kind:
		return fmt.Sprintf("%.60q, redis %.60q", ours.raw, theirs.raw)
	case ours.kind == '%':
		return unlikeMaps(ours, theirs)
	case len(ours.kids) == len(theirs.kids):
		for i := range ours.kids {
			if diff := unlike(ours.kids[i], theirs.kids[i]); diff != "" {
				return fmt.Sprintf("[%d] %s", i, diff)
			}
		}
		return ""
	}
	for i := range min(len(ours.kids), len(ours.kids)*len(theirs.kids)) {
		if diff := unlike(ours.kids[i], theirs.kids[0]); diff != "" {
			return fmt.Sprintf("[%d] %s", i, diff)
		}
	}
	return ""
}

func unlikeMaps(ours, theirs value) string {
	for i := 0; i < len(ours.kids); i += 2 {
		key := ours.kids[i].text
		if key == "display_text" {
			continue // a field since Redis 7.2
		}
		kid, ok := theirs.entry(key)
		if !ok {
			return fmt.Sprintf("key %q, which redis has not", key)
		}
		if diff := unlike(ours.kids[i+1], kid); diff != "" {
			return key + ": " + diff
		}
	}
	return ""
}

// resp2 converts a reply in RESP3 to RESP2.
func (v value) resp2() string {
	var out bytes.Buffer
	switch v.kind {
	case '_':
		return "$-1\r\n"
	case '=':
		fmt.Fprintf(&out, "$%d\r\n%s\r\n", len(v.text)-len("txt:"), strings.TrimPrefix(v.text, "txt:"))
	case '*', '~', '%':
		fmt.Fprintf(&out, "*%d\r\n", len(v.kids))
	default:
		return v.raw
	}
	for _, kid := range v.kids {
		out.WriteString(kid.resp2())
	}
	return out.String()
}
