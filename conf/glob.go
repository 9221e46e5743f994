package conf

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// Errors for globs that Redis would accept, but that are mistakes.
var (
	errQuotes    = errors.New("has quotes around it; leave them out")
	errBackslash = errors.New(`ends with a single \ (to match a \ in a key, write \\)`)
	errUnclosed  = errors.New(`has a [ without a ] (to match a [ in a key, write \[)`)
	errEmptySet  = errors.New("has an empty set of characters")
	errBang      = errors.New(`has a set [!…]: Redis negates a set with [^…] (to match a ! in a key, write \!)`)
	errRegexp    = errors.New(`is a regular expression; write a glob as in KEYS, such as "lock:*" instead of "lock:.*" ` +
		`(to match a special character itself, write \ before it)`)
)

// regexpPattern matches texts that are frequent in regular expressions and rare in keys. The caller
// has replaced sets and escaped characters (withoutLiterals). A dot after a letter may separate
// names, as in lock.*; after a colon it does not.
var regexpPattern = regexp.MustCompile(`^\^|\$$|(^|[^A-Za-z0-9*?])\.[*+]|[\])][+{]|\([^)]*\|[^(]*\)|\([?]|\\[dDwWsSbB]`)

// lockGlobRule returns a rule for the globs of a setting. The rule returns an error for a glob that
// Redis accepts, but that would match none of the intended keys, and so protect no key. In the
// setting, prefix precedes each glob.
func lockGlobRule(setting, prefix string) func(glob string) error {
	return func(glob string) error { return checkLockGlob(setting, prefix, glob) }
}

func checkLockGlob(setting, prefix, glob string) error {
	if err := checkNotEmpty(glob); err != nil {
		return err
	}
	if n := len(glob); n > 1 && (glob[0] == '\'' || glob[0] == '"') && glob[n-1] == glob[0] {
		return errQuotes
	}
	plain, err := withoutLiterals(glob)
	if err != nil {
		return err
	}
	if regexpPattern.MatchString(plain) {
		return errRegexp
	}
	if i := strings.IndexAny(plain, ",; \t\r\n"); i >= 0 {
		return fmt.Errorf(`contains %q; give each glob separately (--%[2]s %[4]sA --%[2]s %[4]sB, `+
			`%[3]s="%[4]sA %[4]sB", or a line "- %[4]sA" for each in the file; to match a %[1]q in a key, write \%[1]c)`,
			plain[i], setting, variableName(setting), prefix)
	}
	return nil
}

// withoutLiterals returns the glob with a letter in place of the inside of each set and of each
// escaped character. It keeps escaped letters that are character classes in regular expressions.
func withoutLiterals(glob string) (string, error) {
	var plainGlob strings.Builder
	for len(glob) > 0 {
		size := 1
		switch {
		case glob[0] == '\\' && len(glob) == 1:
			return "", errBackslash
		case glob[0] == '\\' && strings.ContainsRune("dDwWsSbB", rune(glob[1])):
			size = 2
			plainGlob.WriteString(glob[:2])
		case glob[0] == '\\':
			size = 2
			plainGlob.WriteByte('x')
		case glob[0] == '[':
			inside, err := charSetLength(glob)
			if err != nil {
				return "", err
			}
			size = inside
			plainGlob.WriteString("[x]")
		default:
			plainGlob.WriteByte(glob[0])
		}
		glob = glob[size:]
	}
	return plainGlob.String(), nil
}

// charSetLength returns the size of the set at the beginning of the glob, including its brackets.
func charSetLength(glob string) (int, error) {
	at := 1
	if strings.HasPrefix(glob[at:], "!") {
		return 0, errBang
	}
	if strings.HasPrefix(glob[at:], "^") {
		at++
	}
	for first := at; at < len(glob); at++ {
		switch glob[at] {
		case '\\':
			at++
		case ']':
			if at == first {
				return 0, errEmptySet
			}
			return at + 1, nil
		}
	}
	return 0, errUnclosed
}

// looksLikePrefix reports whether a glob without wildcards is probably meant as a prefix of keys.
func looksLikePrefix(glob string) bool {
	return !strings.ContainsAny(glob, `*?[\`) && strings.ContainsAny(glob[len(glob)-1:], ":/.|#")
}
