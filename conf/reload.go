package conf

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// ReloadMode is the time at which a changed setting takes effect, after the configuration has been
// read again.
type ReloadMode int

const (
	// AtRestart is for settings that take effect at the next start.
	AtRestart ReloadMode = iota
	// AtOnce is for settings that take effect as soon as the configuration is read again.
	AtOnce
	// PasswordAtOnce is for URLs. A replaced password in the URL takes effect at once, for new
	// connections. Any other change takes effect at the next start.
	PasswordAtOnce
	// MastersAtOnce is for URLs of masters. Like a replaced password, a list with different servers
	// takes effect at once, if the masters can be changed while the proxy runs. If the servers stay
	// the same, any other change takes effect at the next start.
	MastersAtOnce
)

// Change describes a setting that differs between two configurations.
type Change struct {
	// Setting is the name of the setting.
	Setting string
	// From and To are the values, with passwords hidden: equal if only a hidden part differs.
	From, To string
}

// String returns the change for logs and replies: max-ttl: "24h" -> "1h".
func (c Change) String() string {
	if c.From == c.To {
		return c.Setting + ": changed"
	}
	return fmt.Sprintf("%s: %s -> %s", c.Setting, c.From, c.To)
}

// MergeReload returns the configuration of a proxy that runs with c and has read next. It is c with
// the changes that can take effect at once. changed lists these changes, and pending lists the
// changes that need a restart. If the combination is invalid, MergeReload returns an error, and
// nothing changes. A file that ends early is a valid file with fewer settings. So it is an error,
// too, if next no longer gives a setting that protects the proxy.
func (c Config) MergeReload(next Config) (mergedConfig Config, changed, pending []Change, err error) {
	mergedConfig = c
	for _, s := range settingsTable {
		from, to := s.get(c), s.get(next)
		switch {
		case slices.Equal(from, to):
		case s.protects && !slices.Contains(next.given, s.Name):
			return c, nil, nil, fmt.Errorf("%s: no longer in the configuration, which may be incomplete; "+
				"to remove it, set it to \"\" or restart the proxy", s.Name)
		case s.Reload == AtOnce,
			s.Reload >= PasswordAtOnce && differOnlyInPasswords(from, to),
			s.Reload == MastersAtOnce && !slices.Equal(addresses(from), addresses(to)):
			s.copy(&mergedConfig, next)
			changed = append(changed, s.newChange(from, to))
		default:
			pending = append(pending, s.newChange(from, to))
		}
	}
	if err := mergedConfig.Validate(); err != nil {
		return c, nil, nil, fmt.Errorf("settings that change at once conflict with settings "+
			"that change only at a restart (%s): %w", changedSettings(pending), err)
	}
	return mergedConfig, changed, pending, nil
}

func changedSettings(all []Change) string {
	var names []string
	for _, c := range all {
		names = append(names, c.Setting)
	}
	return strings.Join(names, ", ")
}

func (s Setting) newChange(from, to []string) Change {
	return Change{Setting: s.Name, From: s.redactedList(from), To: s.redactedList(to)}
}

// redactedList returns the values for a [Change], with passwords hidden.
func (s Setting) redactedList(values []string) string {
	shown := make([]string, len(values))
	for i, v := range values {
		shown[i] = fmt.Sprintf("%q", s.redact(v))
	}
	if s.IsList {
		return "[" + strings.Join(shown, " ") + "]"
	}
	return strings.Join(shown, " ")
}

// differOnlyInPasswords reports whether URLs differ only in passwords, each replaced by another
// password. A new login, or the login of another user, is a different change: connected clients
// would get rights that they did not have.
func differOnlyInPasswords(from, to []string) bool {
	return slices.EqualFunc(from, to, func(a, b string) bool {
		x, xOK := maskPassword(a)
		y, yOK := maskPassword(b)
		return a == b || xOK && yOK && x == y
	})
}

// addresses returns the addresses in URLs, sorted.
func addresses(urls []string) []string {
	all := make([]string, len(urls))
	for i, text := range urls {
		if u, err := url.Parse(text); err == nil {
			all[i] = u.Host + u.Path
		}
	}
	slices.Sort(all)
	return all
}

// HasMasters reports whether the masters have exactly these addresses, in any order.
func (c Config) HasMasters(names []string) bool {
	all := make([]string, len(c.Masters))
	for i, text := range c.Masters {
		if u, err := url.Parse(text); err == nil {
			all[i] = cmp.Or(u.Host, u.Path)
		}
	}
	slices.Sort(all)
	return slices.Equal(all, slices.Sorted(slices.Values(names)))
}

// HasSameMasters reports whether both configurations name the same masters, in any order.
func (c Config) HasSameMasters(other Config) bool {
	return slices.Equal(addresses(c.Masters), addresses(other.Masters))
}

// maskPassword returns the URL with a fixed text as password. ok is false without password.
func maskPassword(text string) (maskedText string, ok bool) {
	u, err := url.Parse(text)
	if err != nil || u.User == nil {
		return "", false
	}
	if password, given := u.User.Password(); !given || password == "" {
		return "", false
	}
	u.User = url.UserPassword(u.User.Username(), redactedPassword)
	return u.String(), true
}
