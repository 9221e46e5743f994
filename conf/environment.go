package conf

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// environment is a process environment in the form of os.Environ.
type environment []string

// lookup returns the value of a variable. As in a process, the first of two with one name counts.
func (env environment) lookup(name string) (string, bool) {
	for _, pair := range env {
		if key, value, ok := strings.Cut(pair, "="); ok && key == name {
			return value, true
		}
	}
	return "", false
}

// layer returns the settings among the variables, and an error for each variable that looks like a
// setting and is none.
func (env environment) layer() (layer, []error) {
	found := layer{}
	names := []string{FileEnv}
	for _, s := range table {
		names = append(names, s.Env())
		if value, ok := env.lookup(s.Env()); ok {
			found[s.Name] = s.fromEnv(value)
		}
	}
	return found, env.unknown(names)
}

func (s Setting) fromEnv(value string) entry {
	if !s.Repeated {
		return asWritten(s.Env(), []string{value})
	}
	return asWritten(s.Env(), strings.Fields(value))
}

// unknown reports every REDLOCK_ variable that is none of names. Its value is not shown: it may be
// anything.
func (env environment) unknown(names []string) []error {
	strange := map[string]bool{}
	for _, pair := range env {
		name, value, _ := strings.Cut(pair, "=")
		if strings.HasPrefix(name, EnvPrefix) && !slices.Contains(names, name) && !isServiceLink(name, value) {
			strange[name] = true
		}
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(strange)) {
		errs = append(errs, unknown(guarded(name), name, names))
	}
	return errs
}

var serviceLink = regexp.MustCompile(`_SERVICE_HOST$|_SERVICE_PORT(_\w+)?$|_PORT_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?$`)

// isServiceLink reports whether the variable is one of those that Kubernetes puts into every
// container for each service, such as REDLOCK_PROXY_PORT=tcp://10.0.0.1:6380: a service with our
// name must not keep the proxy from starting.
func isServiceLink(name, value string) bool {
	if strings.HasSuffix(name, "_PORT") && strings.Contains(value, "://") {
		return true
	}
	return serviceLink.MatchString(name)
}
