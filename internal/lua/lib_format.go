package lua

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"redlock-proxy/internal/lua/clib"
)

// stringFormat implements string.format: C's printf with the directives that Lua allows.
func stringFormat(c *Call) []Value {
	format := c.WantString(1)
	var b strings.Builder
	arg := 1
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			b.WriteByte(format[i])
			continue
		}
		if i++; i < len(format) && format[i] == '%' {
			b.WriteByte('%')
			continue
		}
		if arg++; arg > c.NArgs() {
			c.RaiseBadArg(arg, "no value")
		}
		d := c.parseDirective(format, &i)
		text := d.formatArg(c, arg)
		c.State().Charge(len(text))
		b.WriteString(text)
	}
	c.State().Charge(b.Len())
	return c.Return(b.String())
}

// directive is one % directive of a format string.
type directive struct {
	left, plus, blank, alternate, zero bool
	width                              int
	precision                          int // -1 if there is none
	verb                               byte
}

// parseDirective parses a directive after its %, and sets i to the index of its last character.
func (c *Call) parseDirective(format string, i *int) directive {
	d := directive{precision: -1}
	at := func() byte {
		if *i < len(format) {
			return format[*i]
		}
		return 0
	}
	flags := *i
	for ; at() != 0 && strings.IndexByte("-+ #0", at()) >= 0; *i++ {
		switch at() {
		case '-':
			d.left = true
		case '+':
			d.plus = true
		case ' ':
			d.blank = true
		case '#':
			d.alternate = true
		case '0':
			d.zero = true
		}
	}
	if *i-flags > len("-+ #0") {
		c.Fail("invalid format (repeated flags)")
	}
	twoDigits := func() (n int) {
		for k := 0; k < 2 && clib.IsDigit(at()); k++ {
			n = n*10 + int(at()-'0')
			*i++
		}
		return n
	}
	d.width = twoDigits()
	if at() == '.' {
		*i++
		d.precision = twoDigits()
	}
	if clib.IsDigit(at()) {
		c.Fail("invalid format (width or precision too long)")
	}
	d.verb = at()
	return d
}

// formatArg returns the text of the argument number arg.
func (d directive) formatArg(c *Call, arg int) string {
	switch d.verb {
	case 'c':
		d.zero = false
		return clib.CutAtZero(d.pad("", string([]byte{byte(c.WantInt32(arg))})))
	case 'd', 'i':
		n := clib.Truncate(c.WantNumber(arg))
		digits := strings.TrimPrefix(strconv.FormatInt(n, 10), "-")
		return d.formatInteger(d.sign(n < 0), digits)
	case 'o', 'u', 'x', 'X':
		return d.formatUnsigned(clib.Unsigned(c.WantNumber(arg)))
	case 'e', 'E', 'f', 'g', 'G':
		return d.formatFloat(c.WantNumber(arg))
	case 'q':
		return quote(c.WantString(arg))
	case 's':
		s := c.WantString(arg)
		if d.precision < 0 && len(s) >= 100 {
			return s
		}
		s = clib.CutAtZero(s)
		if d.precision >= 0 && len(s) > d.precision {
			s = s[:d.precision]
		}
		d.zero = false
		return d.pad("", s)
	}
	c.Fail("invalid option '%%%s' to 'format'", clib.CutAtZero(string([]byte{d.verb})))
	return ""
}

func (d directive) sign(negative bool) string {
	switch {
	case negative:
		return "-"
	case d.plus:
		return "+"
	case d.blank:
		return " "
	}
	return ""
}

func (d directive) formatUnsigned(n uint64) string {
	base, prefix := 10, ""
	switch d.verb {
	case 'o':
		base = 8
	case 'x', 'X':
		base, prefix = 16, "0"+string(d.verb)
	}
	digits := strconv.FormatUint(n, base)
	if d.verb == 'X' {
		digits = strings.ToUpper(digits)
	}
	if !d.alternate || n == 0 {
		prefix = ""
	}
	if d.alternate && d.verb == 'o' && len(digits) >= d.precision && digits[0] != '0' {
		digits = "0" + digits
	}
	return d.formatInteger(prefix, digits)
}

// formatInteger pads digits to the precision, and the complete text to the width.
func (d directive) formatInteger(prefix, digits string) string {
	if d.precision >= 0 {
		d.zero = false
		if d.precision == 0 && digits == "0" {
			digits = ""
			if d.verb == 'o' && d.alternate {
				digits = "0"
			}
		}
		digits = strings.Repeat("0", max(d.precision-len(digits), 0)) + digits
	}
	return d.pad(prefix, digits)
}

func (d directive) formatFloat(n float64) string {
	sign := d.sign(math.Signbit(n))
	if math.IsNaN(n) || math.IsInf(n, 0) {
		text := strings.TrimPrefix(clib.FormatNonFinite(n), "-")
		if d.verb < 'a' {
			text = strings.ToUpper(text)
		}
		d.zero = false
		return d.pad(sign, text)
	}
	precision := d.precision
	if precision < 0 {
		precision = 6
	}
	format := "%.*" + string(d.verb)
	if d.alternate {
		format = "%#.*" + string(d.verb)
		if precision == 0 && (d.verb == 'g' || d.verb == 'G') {
			precision = 1
		}
	}
	return d.pad(sign, fmt.Sprintf(format, precision, math.Abs(n)))
}

// pad pads a text to the width.
func (d directive) pad(prefix, text string) string {
	missing := d.width - len(prefix) - len(text)
	switch {
	case missing <= 0:
		return prefix + text
	case d.left:
		return prefix + text + strings.Repeat(" ", missing)
	case d.zero:
		return prefix + strings.Repeat("0", missing) + text
	}
	return strings.Repeat(" ", missing) + prefix + text
}

// quote returns a string as a literal of Lua.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(s) {
		switch s[i] {
		case '"', '\\', '\n':
			b.WriteByte('\\')
			b.WriteByte(s[i])
		case '\r':
			b.WriteString(`\r`)
		case 0:
			b.WriteString(`\000`)
		default:
			b.WriteByte(s[i])
		}
	}
	b.WriteByte('"')
	return b.String()
}
