package conf

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

var (
	errDollar = errors.New("has a $ that begins neither ${NAME} nor $$ (a dollar sign is written $$)")
	variable  = regexp.MustCompile(`^\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)
)

// expand replaces ${NAME} by the variable NAME and $$ by a dollar sign. What a variable holds is not expanded again.
func expand(text string, lookup func(string) (string, bool)) (string, error) {
	var out strings.Builder
	for {
		before, _, found := strings.Cut(text, "$")
		out.WriteString(before)
		if !found {
			return out.String(), nil
		}
		value, length, err := expandOne(text[len(before):], lookup)
		if err != nil {
			return "", err
		}
		out.WriteString(value)
		text = text[len(before)+length:]
	}
}

// expandOne returns what stands for the ${NAME} or $$ at the start of text, and how long that is.
func expandOne(text string, lookup func(string) (string, bool)) (value string, length int, err error) {
	if strings.HasPrefix(text, "$$") {
		return "$", 2, nil
	}
	match := variable.FindStringSubmatch(text)
	if match == nil {
		return "", 0, errDollar
	}
	value, ok := lookup(match[1])
	if !ok {
		return "", 0, fmt.Errorf("needs the environment variable %s, which is not set", match[1])
	}
	return value, len(match[0]), nil
}
