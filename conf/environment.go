package conf

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// The variables that the command lock sets for the command that it runs. They are no settings.
const (
	LockKeyEnv   = EnvPrefix + "KEY"
	LockTokenEnv = EnvPrefix + "TOKEN"
	LockFenceEnv = EnvPrefix + "FENCE"
)

// IsLockVariable reports whether the command lock sets the variable.
func IsLockVariable(name string) bool {
	return name == LockKeyEnv || name == LockTokenEnv || name == LockFenceEnv
}

// environment holds a process environment in the form of os.Environ.
type environment []string

// lookup returns the value of a variable. If the name occurs twice, the first value counts, as in a
// process.
func (env environment) lookup(name string) (string, bool) {
	for _, pair := range env {
		if key, value, ok := strings.Cut(pair, "="); ok && key == name {
			return value, true
		}
	}
	return "", false
}

// layer returns the settings among the variables. It returns an error for each setting whose
// present and former variables are both set, and for each unknown variable.
func (env environment) layer() (layer, []error) {
	found := layer{}
	var errs []error
	for _, s := range settingsTable {
		for _, name := range s.Names() {
			value, ok := env.lookup(variableName(name))
			if !ok {
				continue
			}
			if err := found.add(s, s.newEnvEntry(variableName(name), value), name); err != nil {
				errs = append(errs, err)
			}
		}
	}
	return found, append(errs, env.unknownVariableErrors()...)
}

func (s Setting) newEnvEntry(variable, value string) entry {
	if !s.IsList {
		return newEntry(variable, []string{value})
	}
	return newEntry(variable, strings.Fields(value))
}

// unknownVariableErrors returns an error for each variable with EnvPrefix that is neither a setting
// nor a service link of Kubernetes, nor set by the command lock. The error omits the variable's
// value, which may be a secret.
func (env environment) unknownVariableErrors() []error {
	unknownNames := map[string]bool{}
	for _, pair := range env {
		name, value, _ := strings.Cut(pair, "=")
		if strings.HasPrefix(name, EnvPrefix) && !isSettingVariable(name) && !isServiceLink(name, value) &&
			!IsLockVariable(name) {
			unknownNames[name] = true
		}
	}
	var errs []error
	names := []string{FileEnv}
	for _, s := range settingsTable {
		names = append(names, s.Env())
	}
	for _, name := range slices.Sorted(maps.Keys(unknownNames)) {
		errs = append(errs, unknownSettingError(redactIfURL(name), name, names))
	}
	return errs
}

// isSettingVariable reports whether the variable belongs to a setting, also by its former name, or
// names the configuration file.
func isSettingVariable(variable string) bool {
	name := settingNameOf(variable)
	_, known := findSetting(name)
	return variable == FileEnv || known && variableName(name) == variable
}

var serviceLinkPattern = regexp.MustCompile(`_SERVICE_HOST$|_SERVICE_PORT(_\w+)?$|_PORT_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?$`)

// isServiceLink reports whether Kubernetes adds the variable to every container for a service. An
// example is REDLOCK_PROXY_PORT=tcp://10.0.0.1:6380. A service whose name begins with redlock must
// not keep the proxy from starting.
func isServiceLink(name, value string) bool {
	if strings.HasSuffix(name, "_PORT") && strings.Contains(value, "://") {
		return true
	}
	return serviceLinkPattern.MatchString(name)
}
