package conf

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// LockClass names the class of the locks whose keys match a glob.
type LockClass struct{ Name, Glob string }

// maxLockClasses limits the values of lock-class. Each class has about 40 time series.
const maxLockClasses = 50

// lockClassName matches the names of classes. They are values of a label in queries and dashboards.
var lockClassName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,49}$`)

// otherLockClass is the class of the keys that match no glob.
const otherLockClass = "other"

// LockClasses returns the classes of locks, in the order in which their globs are tried.
func (c Config) LockClasses() []LockClass {
	all := make([]LockClass, len(c.LockClass))
	for i, value := range c.LockClass {
		all[i].Name, all[i].Glob, _ = strings.Cut(value, "=")
	}
	return all
}

// checkLockClass returns an error for a value that is not a class and a glob of keys.
func checkLockClass(value string) error {
	name, glob, found := strings.Cut(value, "=")
	switch {
	case !found:
		return errors.New(`has no = between a name and a glob; write it as in "billing=billing:*"`)
	case !lockClassName.MatchString(name):
		return fmt.Errorf("has the name %q; use 1 to 50 letters, digits, '_', '-' and '.', with a letter or digit first", name)
	case name == otherLockClass:
		return fmt.Errorf("has the name %q, which is for keys that match no glob; use another name", name)
	}
	if err := lockGlobRule("lock-class", name+"=")(glob); err != nil {
		return fmt.Errorf("has the glob %q, which %w", glob, err)
	}
	return nil
}

// lockClassProblems returns a problem if there are too many classes.
func (c Config) lockClassProblems() []problem {
	if n := len(c.LockClass); n > maxLockClasses {
		return []problem{{setting: "lock-class", index: maxLockClasses,
			text: fmt.Sprintf("too many values: %d are given, and the limit is %d; use globs that match more keys",
				n, maxLockClasses)}}
	}
	return nil
}

// lockClassWarnings returns warnings about classes that probably do not have the intended effect.
func (c Config) lockClassWarnings() (found []string) {
	if len(c.LockClass) > 0 && c.Admin == "" {
		found = append(found, "lock-class: has no effect without admin, the address of the port that serves metrics")
	}
	for _, class := range c.LockClasses() {
		if looksLikePrefix(class.Glob) {
			found = append(found, fmt.Sprintf("lock-class: %q matches one key only; %q matches all keys that begin "+
				"with it", class.Glob, class.Glob+"*"))
		}
	}
	return found
}
