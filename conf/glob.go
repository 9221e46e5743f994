package conf

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// Why a glob that Redis would take cannot be meant.
var (
	errQuotes    = errors.New("has quotes around it, which belong to no key: leave them out")
	errBackslash = errors.New(`ends with a \, after which there is nothing (in a key it is written \\)`)
	errUnclosed  = errors.New(`has a [ without its ] (in a key it is written \[)`)
	errEmptySet  = errors.New("has a set [] without a character in it")
	errBang      = errors.New(`has a set [!…]: the globs of Redis write [^…] for any character but these (in a key it is written \!)`)
	errRegexp    = errors.New(`is a regular expression, and globs are wanted, as in KEYS: * matches any characters, ? one, [a-z] one of a set ("lock:*", not "lock:.*"; a \ before a character has it taken as it is)`)
)

// isRegexp finds what is frequent in regular expressions and hardly in keys. What is
// taken literally was replaced by a letter before. A dot behind a letter may part names,
// as in lock.*; behind a colon it does not.
var isRegexp = regexp.MustCompile(`^\^|\$$|(^|[^A-Za-z0-9*?])\.[*+]|[\])][+{]|\([^)]*\|[^(]*\)|\([?]|\\[dDwWsSbB]`)

// lockGlob says what is wrong with a glob of lock keys: it would be taken, match none of
// the keys that were meant, and so protect nothing.
func lockGlob(glob string) error {
	if err := notEmpty(glob); err != nil {
		return err
	}
	if n := len(glob); n > 1 && (glob[0] == '\'' || glob[0] == '"') && glob[n-1] == glob[0] {
		return errQuotes
	}
	plain, err := withoutLiterals(glob)
	if err != nil {
		return err
	}
	if isRegexp.MatchString(plain) {
		return errRegexp
	}
	if i := strings.IndexAny(plain, ",; \t\r\n"); i >= 0 {
		return fmt.Errorf(`is one glob with %q in it: give each glob by itself (--lock-keys A --lock-keys B, REDLOCK_LOCK_KEYS="A B", or a line "- A" for each in the file; in a key it is written \%[1]c)`, plain[i])
	}
	return nil
}

// withoutLiterals is the glob with a letter for each set's inside and for each character
// behind a backslash, but for the letters that mean a class of characters elsewhere.
func withoutLiterals(glob string) (string, error) {
	var plain strings.Builder
	for len(glob) > 0 {
		size := 1
		switch {
		case glob[0] == '\\' && len(glob) == 1:
			return "", errBackslash
		case glob[0] == '\\' && strings.ContainsRune("dDwWsSbB", rune(glob[1])):
			size = 2
			plain.WriteString(glob[:2])
		case glob[0] == '\\':
			size = 2
			plain.WriteByte('x')
		case glob[0] == '[':
			inside, err := setSize(glob)
			if err != nil {
				return "", err
			}
			size = inside
			plain.WriteString("[x]")
		default:
			plain.WriteByte(glob[0])
		}
		glob = glob[size:]
	}
	return plain.String(), nil
}

// setSize is the size of the set that the glob begins with, its brackets included.
func setSize(glob string) (int, error) {
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

// onlyPrefix reports whether a glob looks as if all keys were meant that begin so.
func onlyPrefix(glob string) bool {
	return !strings.ContainsAny(glob, `*?[\`) && strings.ContainsAny(glob[len(glob)-1:], ":/.|#")
}
