package conf

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

var (
	errDollar = errors.New("has a $ that begins neither ${NAME} nor $$ (a dollar sign is written $$)")
	// dollarPattern matches each dollar sign, with the braces and the name, or the dollar sign,
	// after it.
	dollarPattern = regexp.MustCompile(`\$(\$|\{[A-Za-z_][A-Za-z0-9_]*\})?`)
)

// expand replaces ${NAME} by the variable NAME and $$ by a dollar sign. It does not expand the
// values of variables again.
func expand(text string, lookup func(string) (string, bool)) (string, error) {
	var firstErr error
	expanded := dollarPattern.ReplaceAllStringFunc(text, func(match string) string {
		if match == "$$" {
			return "$"
		}
		name := strings.Trim(match, "${}")
		value, known := lookup(name)
		switch {
		case firstErr != nil:
		case name == "":
			firstErr = errDollar
		case !known:
			firstErr = fmt.Errorf("needs the environment variable %s, which is not set", name)
		}
		return value
	})
	if firstErr != nil {
		return "", firstErr
	}
	return expanded, nil
}
