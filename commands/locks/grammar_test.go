package locks

import (
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"redlock-proxy/quorum"
)

const (
	day        = 24 * time.Hour
	badSyntax  = "ERR syntax error"
	notInteger = "ERR value is not an integer or out of range"
	badLockTTL = "ERR invalid expire time in 'lock' command"
	overMaxTTL = "ERR invalid expire time in 'lock' command: the TTL exceeds max-ttl (86400000 ms)"
	badTimeout = "ERR timeout is not an integer or out of range"
	negTimeout = "ERR timeout is negative"
)

var lockOptions = []struct {
	options string
	want    string // as parseOptions describes it, or the error
}{
	{"PX 10000", "10s"},
	{"px 1", "1ms"},
	{"Px 86400000", "24h0m0s"},
	{"EX 10", "10s"},
	{"eX 86400", "24h0m0s"},
	{"PX 10000 BLOCK 500", "10s, waiting 500ms"},
	{"BLOCK 500 PX 10000", "10s, waiting 500ms"},
	{"block 500 ex 1", "1s, waiting 500ms"},
	{"ex 1 bLoCk 1", "1s, waiting 1ms"},
	{"PX 10000 BLOCK 0", "10s, waiting for ever"},
	{"PX 10000 BLOCK 9223372036854", "10s, waiting 2562047h47m16.854s"},

	{"", badSyntax},
	{"PX", badSyntax},
	{"EX", badSyntax},
	{"BLOCK", badSyntax},
	{"BLOCK 500", badSyntax},
	{"PX 10000 BLOCK", badSyntax},
	{"BLOCK 500 PX", badSyntax},
	{"PX 10000 EX", badSyntax},
	{"10000 PX", badSyntax},
	{"10000", badSyntax},
	{"NX 10000", badSyntax},
	{"PXAT 10000", badSyntax},
	{"FENCE PX 10000", "10s, with a fence"},
	{"PX 10000 BLOCK 5 fence", "10s, waiting 5ms, with a fence"},
	{"FENCE", badSyntax},
	{"PX 10000 FENCE FENCE", badSyntax},
	{"PX 10000 FENCE 1", badSyntax},
	{"PX FENCE", notInteger},
	{"PX 10000 ", badSyntax},
	{"PX 10000 NX", badSyntax},
	{"PX 10000 PX 10000", badSyntax},
	{"PX 10000 EX 10", badSyntax},
	{"EX 10 PX 10000", badSyntax},
	{"EX 10 ex 10", badSyntax},
	{"PX 10000 BLOCK 5 BLOCK 5", badSyntax},
	{"PX 10000 BLOCK 0 block 0", badSyntax},
	{"PX\x00 10000", badSyntax},
	{"BLOC\u212a 5 PX 10000", badSyntax}, // the Kelvin sign is not a K

	{"PX x", notInteger},
	{"PX ", notInteger},
	{"PX 1.5", notInteger},
	{"PX +1", notInteger},
	{"PX 01", notInteger},
	{"PX -0", notInteger},
	{"PX 1e3", notInteger},
	{"PX 0x10", notInteger},
	{"PX 1_000", notInteger},
	{"PX 9223372036854775808", notInteger},
	{"EX -9223372036854775809", notInteger},
	{"PX 1\x00", notInteger},
	{"EX \u0661", notInteger}, // an Arabic 1

	{"PX 0", badLockTTL},
	{"EX 0", badLockTTL},
	{"PX -1", badLockTTL},
	{"EX -9223372036854775808", badLockTTL},
	{"PX 86400001", overMaxTTL},
	{"EX 86401", overMaxTTL},
	{"PX 9223372036854775807", overMaxTTL},
	{"EX 9223372036854775807", overMaxTTL},
	{"EX 9223372036854775", overMaxTTL},
	{"EX 18446744073709551", overMaxTTL}, // times 1000 it would wrap around to 384 ms

	{"PX 10000 BLOCK x", badTimeout},
	{"PX 10000 BLOCK 1.5", badTimeout},
	{"PX 10000 BLOCK +5", badTimeout},
	{"PX 10000 BLOCK ", badTimeout},
	{"PX 10000 BLOCK 9223372036855", badTimeout},
	{"PX 10000 BLOCK 9223372036854775807", badTimeout},
	{"PX 10000 BLOCK -1", negTimeout},
	{"PX 10000 BLOCK -9223372036854775808", negTimeout},

	// The error is about the first mistake.
	{"PX x NX 1", notInteger},
	{"NX 1 PX x", badSyntax},
	{"BLOCK -1 PX 0", negTimeout},
	{"PX 0 BLOCK -1", badLockTTL},
}

func TestLockOptions(t *testing.T) {
	g := grammar{name: "lock", takesLock: true, maxTTL: day}
	for _, test := range lockOptions {
		var options []string
		if test.options != "" {
			options = strings.Split(test.options, " ")
		}
		if got := parseOptions(g, options); got != test.want {
			t.Errorf("%q: %q, want %q", test.options, got, test.want)
		}
	}
}

// parseOptions describes the meaning of options, or returns the error.
func parseOptions(g grammar, options []string) string {
	args := [][]byte{[]byte("lock"), []byte("k\x00 "), []byte("t\xff")}
	for _, o := range options {
		args = append(args, []byte(o))
	}
	parsed, err := g.parse(args)
	if err != nil {
		if !reflect.DeepEqual(parsed, lockArgs{}) {
			return fmt.Sprintf("%v, but also %+v", err, parsed)
		}
		// TestWordInSyntaxErrors checks the text after the prefix.
		if strings.HasPrefix(err.Error(), badSyntax+": ") {
			return badSyntax
		}
		return err.Error()
	}
	if !slices.Equal(parsed.keys, []string{"k\x00 "}) || parsed.token != "t\xff" {
		return fmt.Sprintf("keys %q, token %q", parsed.keys, parsed.token)
	}
	text := fmt.Sprint(parsed.ttl)
	switch parsed.wait {
	case 0:
	case quorum.NoWaitLimit:
		text += ", waiting for ever"
	default:
		text += fmt.Sprint(", waiting ", parsed.wait)
	}
	if parsed.at {
		text += ", and when"
	}
	if parsed.fence {
		text += ", with a fence"
	}
	switch {
	case parsed.slots > 0:
		text += fmt.Sprintf(", one of %d", parsed.slots)
	case parsed.slots != 0:
		text += ", shared"
	}
	if parsed.keepalive {
		text += fmt.Sprint(", kept for ", parsed.maxHold)
	}
	return text
}

// TestWordInSyntaxErrors checks that an error names the wrong word, as the client wrote it.
func TestWordInSyntaxErrors(t *testing.T) {
	g := grammar{name: "lock", takesLock: true, maxTTL: day}
	for words, want := range map[string]string{
		"LOCK k PX 1000 token":           "unexpected '1000'",
		"LOCK PX 1000 k token":           "unexpected 'k'",
		"LOCK k t PX 1000 NX":            "unexpected 'NX'",
		"LOCK k t PX 1000 Ex 1":          "unexpected 'Ex'",
		"LOCK k t PX 1000 AT at":         "unexpected 'at'",
		"LOCK k t BLOCK 5 PX":            "'PX' requires a value",
		"LOCK k t FENCE BLOCK 5":         "PX or EX is missing",
		"LOCK k t PX 1000 BLOCK 5 BLOCK": "unexpected 'BLOCK'",

		"LOCK k t PX 1000 MAXHOLD 5000":              "MAXHOLD must follow KEEPALIVE",
		"LOCK k t MAXHOLD 5000 KEEPALIVE PX 1000":    "MAXHOLD must follow KEEPALIVE",
		"LOCK k t KEEPALIVE PX 1000 MAXHOLD 5000":    "MAXHOLD must follow KEEPALIVE",
		"LOCK k t PX 1000 KEEPALIVE maxhold":         "'maxhold' requires a value",
		"LOCK k t PX 1000 KEEPALIVE Keepalive":       "unexpected 'Keepalive'",
		"LOCK k t PX 1000 KEEPALIVE 5000":            "unexpected '5000'",
		"LOCK k t KEEPALIVE":                         "PX or EX is missing",
		"LOCK k t PX 1000 KEEPALIVE MAXHOLD 9000 AT": "",
	} {
		var args [][]byte
		for word := range strings.FieldsSeq(words) {
			args = append(args, []byte(word))
		}
		switch _, err := g.parse(args); {
		case want == "" && err == nil:
		case err == nil || err.Error() != badSyntax+": "+want:
			t.Errorf("%s: %v, want %s", words, err, want)
		}
	}
}

// TestLockOptionsWithDifferentLimits checks that max-ttl is exact to the millisecond.
func TestLockOptionsWithDifferentLimits(t *testing.T) {
	g := grammar{name: "extend", maxTTL: 1500 * time.Millisecond}
	const overLimitError = "ERR invalid expire time in 'extend' command: the TTL exceeds max-ttl (1500 ms)"
	for options, want := range map[string]string{
		"PX 1500": "1.5s", "PX 1501": overLimitError, "EX 1": "1s", "EX 2": overLimitError,
		"PX 100 BLOCK 1": badSyntax, "BLOCK 1 PX 100": badSyntax,
	} {
		if got := parseOptions(g, strings.Split(options, " ")); got != want {
			t.Errorf("%q: %q, want %q", options, got, want)
		}
	}
}

// TestKeepaliveGrammar checks KEEPALIVE and MAXHOLD, with LOCK and with EXTEND.
func TestKeepaliveGrammar(t *testing.T) {
	const badHold = "ERR invalid MAXHOLD in 'lock' command: "
	for options, want := range map[string]string{
		"PX 1000 KEEPALIVE":                                 "1s, kept for 0s",
		"keepalive px 100":                                  "100ms, kept for 0s",
		"KEEPALIVE MAXHOLD 5000 PX 1000 BLOCK 5":            "1s, waiting 5ms, kept for 5s",
		"BLOCK 5 PX 1000 KEEPALIVE maxHold 1000 FENCE":      "1s, waiting 5ms, with a fence, kept for 1s",
		"PX 1000 KEEPALIVE MAXHOLD 9223372036854":           "1s, kept for 2562047h47m16.854s",
		"PX 1000 KEEPALIVE MAXHOLD 9223372036855":           notInteger,
		"PX 1000 KEEPALIVE MAXHOLD x":                       notInteger,
		"PX 1000 KEEPALIVE MAXHOLD 0":                       badHold + "it must be positive",
		"PX 1000 KEEPALIVE MAXHOLD -5":                      badHold + "it must be positive",
		"PX 1000 KEEPALIVE MAXHOLD 999":                     badHold + "it must not be shorter than the TTL",
		"KEEPALIVE PX 99":                                   badLockTTL + ": with KEEPALIVE the TTL must be at least 100 ms",
		"PX 1000 KEEPALIVE MAXHOLD 5000 MAXHOLD 5000":       badSyntax,
		"PX 1000 KEEPALIVE MAXHOLD 5000 KEEPALIVE BLOCK 20": badSyntax,
	} {
		g := grammar{name: "lock", takesLock: true, maxTTL: day}
		if got := parseOptions(g, strings.Split(options, " ")); got != want {
			t.Errorf("%q: %q, want %q", options, got, want)
		}
	}
	g := grammar{name: "extend", maxTTL: day}
	if got := parseOptions(g, []string{"PX", "1000", "KEEPALIVE", "MAXHOLD", "5000"}); got != "1s, kept for 5s" {
		t.Errorf("EXTEND: %q", got)
	}
}

// TestHoldersGrammar checks SHARED and SLOTS.
func TestHoldersGrammar(t *testing.T) {
	const badSlots = "ERR invalid SLOTS in 'lock' command: it must be between 1 and 10000"
	for options, want := range map[string]string{
		"PX 1000 SHARED":                   "1s, shared",
		"shared BLOCK 5 PX 1000 FENCE":     "1s, waiting 5ms, with a fence, shared",
		"PX 1000 SLOTS 1":                  "1s, one of 1",
		"slots 10000 PX 1000 KEEPALIVE":    "1s, one of 10000, kept for 0s",
		"PX 1000 SLOTS 0":                  badSlots,
		"PX 1000 SLOTS -1":                 badSlots,
		"PX 1000 SLOTS 10001":              badSlots,
		"PX 1000 SLOTS x":                  notInteger,
		"PX 1000 SLOTS":                    badSyntax,
		"PX 1000 SLOTS SHARED":             notInteger,
		"PX 1000 SHARED SHARED":            badSyntax,
		"PX 1000 SHARED SLOTS 5":           badSyntax,
		"PX 1000 SLOTS 5 SHARED BLOCK 100": badSyntax,
		"PX 1000 SLOTS 5 SLOTS 5":          badSyntax,
	} {
		g := grammar{name: "lock", takesLock: true, maxTTL: day}
		if got := parseOptions(g, strings.Split(options, " ")); got != want {
			t.Errorf("%q: %q, want %q", options, got, want)
		}
	}
	g := grammar{name: "extend", maxTTL: day}
	for _, options := range []string{"PX 1000 SHARED", "PX 1000 SLOTS 5"} {
		if got := parseOptions(g, strings.Split(options, " ")); got != badSyntax {
			t.Errorf("EXTEND: %q", got)
		}
	}
	several := grammar{name: "mlock", several: true, takesLock: true, maxTTL: day}
	for _, options := range []string{"PX 1000 SHARED", "SLOTS 5 PX 1000", "PX 1000 KEEPALIVE slots 1 shared"} {
		args := [][]byte{[]byte("mlock"), []byte("2"), []byte("a"), []byte("b"), []byte("token")}
		for word := range strings.FieldsSeq(options) {
			args = append(args, []byte(word))
		}
		if _, err := several.parse(args); !errors.Is(err, errExclusive) {
			t.Errorf("MLOCK with %s: %v", options, err)
		}
	}
}

// FuzzLockGrammar compares the grammar with a simple second implementation. Line ends separate the
// options.
func FuzzLockGrammar(f *testing.F) {
	for _, test := range lockOptions {
		f.Add(strings.ReplaceAll(test.options, " ", "\n"), day.Milliseconds(), true)
	}
	f.Fuzz(func(t *testing.T, options string, maxMillis int64, takesLock bool) {
		checkGrammar(t, strings.Split(options, "\n"), maxMillis, takesLock)
	})
}

// TestLockGrammarAgainstSimpleParser repeats FuzzLockGrammar with random sequences of meaningful
// words, which find more than random bytes.
func TestLockGrammarAgainstSimpleParser(t *testing.T) {
	words := []string{"px", "PX", "ex", "Ex", "block", "BLOCK", "at", "AT", "fence", "Fence", "nx", "", "0", "1",
		"-1", "01", "5000", "86400", "86401",
		"86400000", "86400001", "9223372036854", "9223372036855", "9223372036854775807", "9223372036854775808", "x"}
	for seed := range uint64(50_000) {
		random := rand.New(rand.NewPCG(1, seed))
		options := make([]string, random.IntN(7))
		for i := range options {
			options[i] = words[random.IntN(len(words))]
		}
		checkGrammar(t, options, []int64{day.Milliseconds(), 1, 999, 1000, 1500}[random.IntN(5)], random.IntN(4) > 0)
	}
}

func checkGrammar(t *testing.T, options []string, maxMillis int64, takesLock bool) {
	t.Helper()
	if slices.ContainsFunc(options, func(o string) bool { return strings.EqualFold(o, "keepalive") }) {
		return // TestKeepaliveGrammar checks KEEPALIVE
	}
	// maxMillis is limited to the range of a Duration.
	maxMillis = min(max(maxMillis, 1), int64(1<<63-1)/int64(time.Millisecond))
	g := grammar{name: "lock", takesLock: takesLock, maxTTL: time.Duration(maxMillis) * time.Millisecond}
	if got, want := parseOptions(g, options), simpleOptions(options, maxMillis, takesLock); got != want {
		t.Errorf("%q, limit %d ms, takes %v: %q, want %q", options, maxMillis, takesLock, got, want)
	}
}

// simpleOptions implements the grammar with regular expressions and unlimited numbers.
func simpleOptions(options []string, maxMillis int64, takesLock bool) string {
	ttl, wait, at, fence := "", "", "", ""
	for len(options) > 0 {
		pair := options[:min(2, len(options))]
		options = options[1:]
		switch {
		case strings.EqualFold(pair[0], "at") && at == "":
			at = ", and when"
			continue
		case strings.EqualFold(pair[0], "fence") && fence == "" && takesLock:
			fence = ", with a fence"
			continue
		case len(pair) < 2:
			return badSyntax
		case simpleTTL.MatchString(pair[0]) && ttl == "":
			if ttl = simpleTime(pair[0], pair[1], maxMillis); strings.HasPrefix(ttl, "ERR") {
				return ttl
			}
		case simpleBlock.MatchString(pair[0]) && wait == "" && takesLock:
			if wait = simpleWait(pair[1]); strings.HasPrefix(wait, "ERR") {
				return wait
			}
		default:
			return badSyntax
		}
		options = options[1:]
	}
	if ttl == "" {
		return badSyntax
	}
	return ttl + wait + at + fence
}

var (
	simpleTTL    = regexp.MustCompile(`\A[pPeE][xX]\z`)
	simpleBlock  = regexp.MustCompile(`\A[bB][lL][oO][cC][kK]\z`)
	simpleDigits = regexp.MustCompile(`\A(0|-?[1-9][0-9]*)\z`)
)

func simpleTime(unit, value string, maxMillis int64) string {
	millis, ok := simpleInt(value)
	if !ok {
		return notInteger
	}
	if strings.EqualFold(unit, "EX") {
		millis.Mul(millis, big.NewInt(1000))
	}
	switch {
	case millis.Sign() <= 0:
		return badLockTTL
	case millis.Cmp(big.NewInt(maxMillis)) > 0:
		return fmt.Sprintf("%s: the TTL exceeds max-ttl (%d ms)", badLockTTL, maxMillis)
	}
	return fmt.Sprint(time.Duration(millis.Int64()) * time.Millisecond)
}

func simpleWait(text string) string {
	millis, ok := simpleInt(text)
	nanos := new(big.Int).Mul(millis, big.NewInt(1e6))
	switch {
	case !ok, millis.Sign() > 0 && !nanos.IsInt64():
		return badTimeout
	case millis.Sign() < 0:
		return negTimeout
	case millis.Sign() == 0:
		return ", waiting for ever"
	}
	return fmt.Sprintf(", waiting %v", time.Duration(nanos.Int64()))
}

// simpleInt reads a 64-bit number in the form that Redis writes.
func simpleInt(text string) (n *big.Int, ok bool) {
	n, ok = new(big.Int), simpleDigits.MatchString(text)
	if ok {
		n.SetString(text, 10)
	}
	return n, ok && n.IsInt64()
}
