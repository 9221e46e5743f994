package conf

import (
	"fmt"
	"strings"
)

// gone are settings of earlier versions, with what there is instead and what to do.
var gone = map[string]string{
	"upstream-connections": "clients share no connections to the upstream, each has one of its own; leave it out",
}

// Gone says of a setting of an earlier version that it is none any more, and what to do. It is
// empty for any other name.
func Gone(name string) string {
	if why := gone[name]; why != "" {
		return "is not a setting any more: " + why
	}
	return ""
}

// unknown is the error for a name that is no setting, or for a variable of such a name, where these
// are known.
func unknown(where, name string, known []string) error {
	if text := Gone(strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(name, EnvPrefix), "_", "-"))); text != "" {
		return fmt.Errorf("%s: %s", where, text)
	}
	return fmt.Errorf("%s: is not a setting (%s)", where, advice(name, known))
}
