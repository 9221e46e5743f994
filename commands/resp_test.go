package commands

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"testing"
)

// value holds a parsed reply: its type, its text or number, and its elements. The elements of a map
// are its keys and values, one after the other.
type value struct {
	kind     byte
	text     string
	elements []value
	raw      string
}

// readReplies parses the bytes that a server sent.
func readReplies(t *testing.T, bytes string) (replies []value) {
	t.Helper()
	for rest := bytes; rest != ""; {
		v, after, err := readValue(rest)
		if err != nil {
			t.Fatalf("no reply in RESP: %v in %.300q", err, bytes)
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
		rest, err = v.readElements(rest)
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

func (v *value) readElements(s string) (rest string, err error) {
	n, err := strconv.Atoi(v.text)
	if n == -1 && err == nil {
		v.kind, v.text = '_', ""
		return s, nil
	}
	if v.kind == '%' {
		n *= 2
	}
	for rest = s; n > 0 && err == nil; n-- {
		var element value
		element, rest, err = readValue(rest)
		v.elements = append(v.elements, element)
	}
	return rest, err
}

// entry returns the value under a key of a map.
func (v value) entry(key string) (found value, ok bool) {
	for i := 0; i+1 < len(v.elements); i += 2 {
		if v.elements[i].text == key {
			return v.elements[i+1], true
		}
	}
	return value{}, false
}

// shapeDiff describes how a reply of the proxy differs from a reply of Redis; empty if it does not.
// It ignores strings and numbers: the types must be the same, and a map must have no key that
// Redis' map lacks. An empty array equals any other array.
func shapeDiff(proxy, redis value) string {
	switch {
	case proxy.kind != redis.kind:
		return fmt.Sprintf("%.60q, redis %.60q", proxy.raw, redis.raw)
	case proxy.kind == '%':
		return mapDiff(proxy, redis)
	case len(proxy.elements) == len(redis.elements):
		for i := range proxy.elements {
			if diff := shapeDiff(proxy.elements[i], redis.elements[i]); diff != "" {
				return fmt.Sprintf("[%d] %s", i, diff)
			}
		}
		return ""
	}
	for i := range min(len(proxy.elements), len(proxy.elements)*len(redis.elements)) {
		if diff := shapeDiff(proxy.elements[i], redis.elements[0]); diff != "" {
			return fmt.Sprintf("[%d] %s", i, diff)
		}
	}
	return ""
}

func mapDiff(proxy, redis value) string {
	for i := 0; i < len(proxy.elements); i += 2 {
		key := proxy.elements[i].text
		if key == "display_text" {
			continue // a field since Redis 7.2
		}
		kid, ok := redis.entry(key)
		if !ok {
			return fmt.Sprintf("key %q, which redis has not", key)
		}
		if diff := shapeDiff(proxy.elements[i+1], kid); diff != "" {
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
		fmt.Fprintf(&out, "*%d\r\n", len(v.elements))
	default:
		return v.raw
	}
	for _, kid := range v.elements {
		out.WriteString(kid.resp2())
	}
	return out.String()
}
