package acl

import (
	"fmt"
	"slices"
	"strings"

	"redlock-proxy/commands/catalog/keys"
	"redlock-proxy/commands/catalog/spec"
	"redlock-proxy/commands/catalog/syntax"
)

// Cause is the kind of permission that a user lacks. If two selectors deny a command, the selector
// with the greater cause came closer to allowing it.
type Cause uint8

// The causes.
const (
	NoCause Cause = iota // the user has the permission
	Command
	Key
	Channel
)

// Denial is the reason why a user may not run a command. The zero value means that the user may run
// it.
type Denial struct {
	Cause Cause
	// Name is the name of the command, the key or the channel; empty if the key is unknown.
	Name string

	index int // index of the key or channel among the words
}

// Error returns the error reply; empty if there is no denial.
func (d Denial) Error() string {
	switch d.Cause {
	case Command:
		return fmt.Sprintf("NOPERM this user has no permissions to run the '%s' command", syntax.Excerpt(d.Name))
	case Key:
		return "NOPERM this user has no permissions to access one of the keys used as arguments"
	case Channel:
		return "NOPERM this user has no permissions to access one of the channels used as arguments"
	}
	return ""
}

// Describe returns the reply of ACL DRYRUN; empty if there is no denial.
func (d Denial) Describe() string {
	switch d.Cause {
	case Command:
		return fmt.Sprintf("This user has no permissions to run the '%s' command", d.Name)
	case Key:
		return fmt.Sprintf("This user has no permissions to access the '%s' key", d.Name)
	case Channel:
		return fmt.Sprintf("This user has no permissions to access the '%s' channel", d.Name)
	}
	return ""
}

// call holds the keys and channels that a command uses.
type call struct {
	words             [][]byte
	entry             *entry // nil if unknown
	name              string
	needsNoPermission bool // AUTH, HELLO, QUIT or RESET
	keys              []keyUse
	isIncomplete      bool // some keys or channels are unknown
	channels          []int
	channelsAreGlobs  bool
}

// keyUse holds a key among the words, with the access to it.
type keyUse struct {
	place  int
	access spec.Access
}

// Check returns the reason why the user may not send a command of these words, if there is one.
func (u *User) Check(words [][]byte) Denial { return u.CheckPrefix(words, len(words)) }

// CheckPrefix checks a command of total words by its first words. It denies the command if the
// missing words could require a permission that the user lacks.
func (u *User) CheckPrefix(words [][]byte, total int) Denial {
	if u.rootSelector().allowsAll() {
		return Denial{}
	}
	c := u.rootSelector().catalog.analyze(words, total)
	if c.needsNoPermission {
		return Denial{}
	}
	closest := Denial{}
	for _, s := range u.selectors {
		d := s.check(c)
		if d.Cause == NoCause {
			return Denial{}
		}
		if d.Cause > closest.Cause || d.Cause == closest.Cause && d.index > closest.index {
			closest = d
		}
	}
	return closest
}

// analyze returns the command that the words name, with the keys and channels that it uses.
func (c *Catalog) analyze(words [][]byte, total int) call {
	e, known := c.find(words)
	found := call{words: words, name: syntax.Lower(words[0])}
	if e != nil {
		found.name = e.name
	}
	if !known {
		return found
	}
	found.entry = e
	if found.needsNoPermission = NeedsNoPermission(words[0]); found.needsNoPermission {
		return found
	}
	found.channels, found.channelsAreGlobs = channelsOf(e, words)
	found.isIncomplete = e.hasHiddenKeys || len(words) < total && found.channels != nil
	if e.keys == nil {
		return found
	}
	places, known := e.keys.Places(words, total)
	found.isIncomplete = found.isIncomplete || !known || places.Last() >= len(words)
	found.keys = keyUsesOf(e, words, places)
	if len(words) < total {
		for i := range found.keys { // a later option may require more
			found.keys[i].access = spec.ReadsValue | spec.ChangesValue
		}
	}
	return found
}

// NeedsNoPermission reports whether a command requires no permission, and may precede a login.
func NeedsNoPermission(name []byte) bool {
	switch syntax.Lower(name) {
	case "auth", "hello", "quit", "reset":
		return true
	}
	return false
}

// keyUsesOf returns the keys at these places, with the access to each.
func keyUsesOf(e *entry, words [][]byte, places keys.Places) (uses []keyUse) {
	for i := range places.All() {
		if i < len(words) {
			uses = append(uses, keyUse{place: i})
		}
	}
	slices.SortFunc(uses, func(a, b keyUse) int { return a.place - b.place })
	first, others := e.access, e.access
	if !e.isOwn {
		first, others = spec.AccessOf(e.name, words)
	}
	for i := range uses {
		if uses[i].access = others; i == 0 {
			uses[i].access = first
		}
	}
	return uses
}

// channelsOf returns the places of a command's channels. globs is set if they are globs.
func channelsOf(e *entry, words [][]byte) (places []int, globs bool) {
	last := 0
	switch {
	case e.effect == spec.SubscribesChannels, e.effect == spec.SubscribesShards:
		last = len(words) - 1
	case e.effect == spec.SubscribesPatterns:
		last, globs = len(words)-1, true
	case e.name == "publish", e.name == "spublish":
		last = min(1, len(words)-1)
	}
	for i := 1; i <= last; i++ {
		places = append(places, i)
	}
	return places, globs
}

// check returns the reason why this selector does not allow a command, if there is one.
func (s *selector) check(c call) Denial {
	if !s.mayCall(c.entry, c.words) {
		return Denial{Cause: Command, Name: c.name}
	}
	if c.isIncomplete && !(s.allKeys && s.allChannels) {
		return Denial{Cause: Key}
	}
	for _, k := range c.keys {
		if !s.mayUseKey(c.words[k.place], k.access) {
			return Denial{Key, string(c.words[k.place]), k.place}
		}
	}
	for _, i := range c.channels {
		if !s.mayUseChannel(c.words[i], c.channelsAreGlobs) {
			return Denial{Channel, string(c.words[i]), i}
		}
	}
	return Denial{}
}

// HasAllPermissions reports whether the user has all permissions.
func (u *User) HasAllPermissions() bool {
	return slices.ContainsFunc(u.selectors, (*selector).allowsAll)
}

// MayRead reports whether the user may read the value of a key, by any command.
func (u *User) MayRead(key string) bool {
	return slices.ContainsFunc(u.selectors, func(s *selector) bool { return s.mayUseKey([]byte(key), spec.ReadsValue) })
}

// DeniedReason returns the error for a command that the user may send, but that the upstream must
// not run, because it could access more than its words name. A Redis would check these accesses by
// the user's permissions, but the upstream knows only the proxy's user. The error is empty if the
// upstream may run the command.
func (u *User) DeniedReason(words [][]byte) string {
	if u.HasAllPermissions() {
		return ""
	}
	switch name := syntax.Lower(words[0]); name {
	case "eval", "evalsha", "eval_ro", "evalsha_ro", "fcall", "fcall_ro":
		return fmt.Sprintf("NOPERM this user has no permissions to run the '%s' command at the upstream: "+
			"the proxy cannot check what a script does there; the user needs ~* &* +@all", name)
	case "sort", "sort_ro":
		return u.sortDenial(words)
	}
	return ""
}

// sortDenial returns the error for a SORT whose BY or GET reads keys by a pattern. It is empty if
// one selector allows both the SORT and reading every key, or if the SORT has no such option.
func (u *User) sortDenial(words [][]byte) string {
	if slices.ContainsFunc(u.selectors, func(s *selector) bool {
		return s.mayReadAllKeys() && s.check(s.catalog.analyze(words, len(words))).Cause == NoCause
	}) {
		return ""
	}
	for i := 2; i < len(words); i++ {
		switch option := syntax.LowerCString(words[i]); option {
		case "limit":
			i += 2
		case "store":
			i++
		case "by", "get":
			if i++; i < len(words) && (option == "get" || slices.Contains(words[i], '*')) {
				return fmt.Sprintf("ERR %s option of SORT denied due to insufficient ACL permissions.",
					strings.ToUpper(option))
			}
		}
	}
	return ""
}

// mayReadAllKeys reports whether the selector allows reading every key.
func (s *selector) mayReadAllKeys() bool {
	matchesAll := func(p keyPattern) bool { return p.glob == "*" && p.access&spec.ReadsValue != 0 }
	return s.allKeys || slices.ContainsFunc(s.keys, matchesAll)
}
