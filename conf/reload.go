package conf

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// Reload is what becomes of a setting that differs when the configuration is read again while the
// proxy runs.
type Reload int

const (
	// AtRestart is for settings that hold from the next start on.
	AtRestart Reload = iota
	// AtOnce is for settings that hold as soon as the configuration is read again.
	AtOnce
	// PasswordAtOnce is for URLs: a password in them that was replaced by another one holds at
	// once, for new connections. Anything else in them holds from the next start on.
	PasswordAtOnce
	// OtherAtOnce is for URLs of masters: also a list with other servers holds at once, if the
	// masters can be changed so. Anything else in the URL of one that stays holds from the next
	// start on.
	OtherAtOnce
)

// Change is a setting that differs between two configurations.
type Change struct {
	// Setting is its name.
	Setting string
	// From and To are its values, without the passwords. They are equal where only what must not be
	// shown differs.
	From, To string
}

// String is the change as a log and a reply show it: max-ttl: "24h" -> "1h".
func (c Change) String() string {
	if c.From == c.To {
		return c.Setting + ": changed"
	}
	return fmt.Sprintf("%s: %s -> %s", c.Setting, c.From, c.To)
}

// Reloaded is what a proxy that runs with c has to run with when its configuration, read again, is
// next: c with those settings of next that can change meanwhile. Changed are these, and pending
// those that differ and need a restart. The error says that both together make no sense; then
// nothing is to be changed.
func (c Config) Reloaded(next Config) (now Config, changed, pending []Change, err error) {
	now = c
	for _, s := range table {
		from, to := s.get(c), s.get(next)
		switch {
		case slices.Equal(from, to):
		case s.Reload == AtOnce, s.Reload >= PasswordAtOnce && onlyPasswords(from, to), s.Reload == OtherAtOnce && !slices.Equal(servers(from), servers(to)):
			s.copy(&now, next)
			changed = append(changed, s.change(from, to))
		default:
			pending = append(pending, s.change(from, to))
		}
	}
	if err := now.Validate(); err != nil {
		return c, nil, nil, fmt.Errorf("what can change at once does not go with what stays until a restart (%s): %w", names(pending), err)
	}
	return now, changed, pending, nil
}

func names(all []Change) string {
	var names []string
	for _, c := range all {
		names = append(names, c.Setting)
	}
	return strings.Join(names, ", ")
}

func (s Setting) change(from, to []string) Change {
	return Change{Setting: s.Name, From: s.list(from), To: s.list(to)}
}

// list shows values.
func (s Setting) list(values []string) string {
	shown := make([]string, len(values))
	for i, v := range values {
		shown[i] = fmt.Sprintf("%q", s.shown(v))
	}
	if s.Repeated {
		return "[" + strings.Join(shown, " ") + "]"
	}
	return strings.Join(shown, " ")
}

// onlyPasswords reports whether URLs differ in nothing but passwords that were replaced by others.
// A login that is new, or of another user, is none of these: clients that are connected would come
// to rights that were not theirs.
func onlyPasswords(from, to []string) bool {
	return slices.EqualFunc(from, to, func(a, b string) bool {
		x, xOK := withoutPassword(a)
		y, yOK := withoutPassword(b)
		return a == b || xOK && yOK && x == y
	})
}

// servers are the addresses in URLs, sorted.
func servers(urls []string) []string {
	all := make([]string, len(urls))
	for i, text := range urls {
		if u, err := url.Parse(text); err == nil {
			all[i] = u.Host + u.Path
		}
	}
	slices.Sort(all)
	return all
}

// HasMasters reports whether these are the addresses of the masters, in any order.
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

// SameMasters reports whether both name the same masters, in any order.
func (c Config) SameMasters(other Config) bool {
	return slices.Equal(servers(c.Masters), servers(other.Masters))
}

// withoutPassword is a URL with another password in the place of its own; ok is false where it has
// none.
func withoutPassword(text string) (same string, ok bool) {
	u, err := url.Parse(text)
	if err != nil || u.User == nil {
		return "", false
	}
	if password, given := u.User.Password(); !given || password == "" {
		return "", false
	}
	u.User = url.UserPassword(u.User.Username(), hidden)
	return u.String(), true
}
