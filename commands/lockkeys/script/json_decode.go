package script

import (
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"redlock-proxy/internal/lua"
	"redlock-proxy/internal/lua/clib"
)

// jsonToken is a token of JSON. kind is its name in cjson's errors.
type jsonToken struct {
	kind    string // the error, if isError is set
	isError bool
	at      int
	text    string
	number  float64
	boolean bool
}

const (
	objectBegin = "T_OBJ_BEGIN"
	objectEnd   = "T_OBJ_END"
	arrayBegin  = "T_ARR_BEGIN"
	arrayEnd    = "T_ARR_END"
	jsonString  = "T_STRING"
	jsonNumber  = "T_NUMBER"
	jsonBoolean = "T_BOOLEAN"
	jsonNull    = "T_NULL"
	jsonColon   = "T_COLON"
	jsonComma   = "T_COMMA"
	jsonEnd     = "T_END"
)

var jsonPunctuation = map[byte]string{
	'{': objectBegin, '}': objectEnd, '[': arrayBegin, ']': arrayEnd, ',': jsonComma, ':': jsonColon,
}

// decoder parses JSON as cjson does: it parses numbers as C does, and stops at a zero byte.
type decoder struct {
	call  *lua.Call
	text  string
	at    int
	depth int
}

func jsonDecode(c *lua.Call) []lua.Value {
	if c.NArgs() != 1 {
		c.RaiseBadArg(1, "expected 1 argument")
	}
	text := c.WantString(1)
	if len(text) >= 2 && (text[0] == 0 || text[1] == 0) {
		return c.Fail("JSON parser does not support UTF-16 or UTF-32")
	}
	c.State().Charge(len(text))
	d := decoder{call: c, text: cString(text)}
	v := d.value(d.next())
	if t := d.next(); t.kind != jsonEnd {
		d.failUnexpected("the end", t)
	}
	return c.Return(v)
}

func (d *decoder) failUnexpected(want string, t jsonToken) {
	d.call.Fail("Expected %s but found %s at character %d", want, t.kind, t.at+1)
}

func (d *decoder) value(t jsonToken) lua.Value {
	switch {
	case t.isError:
	case t.kind == jsonString:
		return d.call.State().Text(t.text)
	case t.kind == jsonNumber:
		return t.number
	case t.kind == jsonBoolean:
		return t.boolean
	case t.kind == jsonNull:
		return lua.Null
	case t.kind == objectBegin:
		return d.object()
	case t.kind == arrayBegin:
		return d.array()
	}
	d.failUnexpected("value", t)
	return nil
}

func (d *decoder) descend() {
	if d.depth++; d.depth > jsonDepth {
		d.call.Fail("Found too many nested data structures (%d) at character %d", d.depth, d.at)
	}
}

func (d *decoder) object() lua.Value {
	d.descend()
	state := d.call.State()
	object := state.NewTable()
	t := d.next()
	for t.isError || t.kind != objectEnd {
		if t.isError || t.kind != jsonString {
			d.failUnexpected("object key string", t)
		}
		key := state.Text(t.text)
		if t = d.next(); t.isError || t.kind != jsonColon {
			d.failUnexpected("colon", t)
		}
		state.Set(object, key, d.value(d.next()))
		if t = d.next(); t.kind == objectEnd {
			break
		}
		if t.isError || t.kind != jsonComma {
			d.failUnexpected("comma or object end", t)
		}
		t = d.next()
		if !t.isError && t.kind == objectEnd {
			d.failUnexpected("object key string", t)
		}
	}
	d.depth--
	return object
}

func (d *decoder) array() lua.Value {
	d.descend()
	state := d.call.State()
	array := state.NewTable()
	t := d.next()
	if t.kind != arrayEnd {
		for i := 1.0; ; i++ {
			state.Set(array, i, d.value(t))
			if t = d.next(); t.kind == arrayEnd {
				break
			}
			if t.isError || t.kind != jsonComma {
				d.failUnexpected("comma or array end", t)
			}
			t = d.next()
		}
	}
	d.depth--
	return array
}

// next returns the next token.
func (d *decoder) next() jsonToken {
	for d.at < len(d.text) && strings.IndexByte(" \t\n\r", d.text[d.at]) >= 0 {
		d.at++
	}
	t := jsonToken{at: d.at}
	rest := d.text[d.at:]
	if rest == "" {
		t.kind = jsonEnd
		return t
	}
	if kind, ok := jsonPunctuation[rest[0]]; ok {
		d.at++
		t.kind = kind
		return t
	}
	switch c := rest[0]; {
	case c == '"':
		return d.string(t)
	case c == '-' || c >= '0' && c <= '9':
		return d.number(t)
	case strings.HasPrefix(rest, "true"):
		d.at += len("true")
		t.kind, t.boolean = jsonBoolean, true
	case strings.HasPrefix(rest, "false"):
		d.at += len("false")
		t.kind = jsonBoolean
	case strings.HasPrefix(rest, "null"):
		d.at += len("null")
		t.kind = jsonNull
	case strings.IndexByte("iInN+", c) >= 0 && isNonJSONNumber(rest):
		return d.number(t)
	default:
		return d.errorToken(t, "invalid token")
	}
	return t
}

// errorToken turns a token into an error at the current position.
func (d *decoder) errorToken(t jsonToken, problem string) jsonToken {
	t.isError, t.kind, t.at = true, problem, d.at
	return t
}

// isNonJSONNumber reports whether s begins like a number that C accepts, but JSON does not.
func isNonJSONNumber(s string) bool {
	if s[0] == '+' {
		return true
	}
	s = strings.TrimPrefix(s, "-")
	if strings.HasPrefix(s, "0") {
		return len(s) > 1 && (s[1]|0x20 == 'x' || s[1] >= '0' && s[1] <= '9')
	}
	if s == "" || s[0] <= '9' {
		return false
	}
	return len(s) >= 3 && (strings.EqualFold(s[:3], "inf") || strings.EqualFold(s[:3], "nan"))
}

func (d *decoder) number(t jsonToken) jsonToken {
	n, rest := clib.ParsePrefix(d.text[d.at:])
	if len(rest) == len(d.text)-d.at {
		return d.errorToken(t, "invalid number")
	}
	d.at = len(d.text) - len(rest)
	t.kind, t.number = jsonNumber, n
	return t
}

func (d *decoder) string(t jsonToken) jsonToken {
	d.at++
	var text []byte
	for {
		if d.at >= len(d.text) {
			return d.errorToken(t, "unexpected end of string")
		}
		c := d.text[d.at]
		switch c {
		case '"':
			d.at++
			t.kind, t.text = jsonString, string(text)
			return t
		case '\\':
			if strings.HasPrefix(d.text[d.at+1:], "u") {
				r, length := unicodeEscape(d.text[d.at:])
				if length == 0 {
					return d.errorToken(t, "invalid unicode escape code")
				}
				text = utf8.AppendRune(text, r)
				d.at += length
				continue
			}
			var ok bool
			if c, ok = unescape(d.text[d.at+1:]); !ok {
				return d.errorToken(t, "invalid escape code")
			}
			d.at++
		}
		text = append(text, c)
		d.at++
	}
}

// unescape returns the character that a backslash before s escapes.
func unescape(s string) (c byte, ok bool) {
	if s == "" {
		return 0, false
	}
	if i := strings.IndexByte(`"\/btnfr`, s[0]); i >= 0 {
		return "\"\\/\b\t\n\f\r"[i], true
	}
	return 0, false
}

// unicodeEscape decodes \uXXXX, or two such escapes that form one character. length is 0 if s does
// not begin with a valid escape.
func unicodeEscape(s string) (r rune, length int) {
	first, ok := fourDigits(s)
	if !ok {
		return 0, 0
	}
	if !utf16.IsSurrogate(first) {
		return first, 6
	}
	second, ok := fourDigits(s[6:])
	if r = utf16.DecodeRune(first, second); !ok || r == utf8.RuneError {
		return 0, 0
	}
	return r, 12
}

func fourDigits(s string) (r rune, ok bool) {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return 0, false
	}
	for _, c := range []byte(s[2:6]) {
		value := hexValue(c)
		if value < 0 {
			return 0, false
		}
		r = r<<4 | rune(value)
	}
	return r, true
}
