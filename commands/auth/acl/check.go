package acl

import (
	"fmt"
	"slices"

	"redlock-proxy/commands/catalog/keys"
	"redlock-proxy/commands/catalog/spec"
	"redlock-proxy/commands/catalog/syntax"
)

// Cause is what a user has no right to. A greater one came nearer to being allowed.
type Cause uint8

// The causes.
const (
	Nothing Cause = iota // there is the right
	Command
	Key
	Channel
)

// Denial is why a user may not do something. Its zero value is that it may.
type Denial struct {
	Cause Cause
	// Name is the command, the key or the channel.
	Name string

	place int // of a key or a channel among the words
}

// Error is the reply to the command; empty where there is no denial.
func (d Denial) Error() string {
	switch d.Cause {
	case Command:
		return fmt.Sprintf("NOPERM this user has no permissions to run the '%s' command", syntax.Shown(d.Name))
	case Key:
		return "NOPERM this user has no permissions to access one of the keys used as arguments"
	case Channel:
		return "NOPERM this user has no permissions to access one of the channels used as arguments"
	}
	return ""
}

// Describe is what ACL DRYRUN says of it; empty where there is no denial.
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

// call is a command, looked at: what it uses.
type call struct {
	words    [][]byte
	entry    *entry // nil: not known
	name     string
	free     bool // no right is needed
	keys     []use
	unclear  bool // which keys it uses is not known
	channels []int
	globs    bool // the channels are globs
}

// use is a key among the words, and what is done with it.
type use struct {
	place  int
	access spec.Access
}

// Check says whether the user may send a command of these words.
func (u *User) Check(words [][]byte) Denial { return u.CheckBegin(words, len(words)) }

// CheckBegin is Check for a command of so many words of which only the first ones are given. What
// these do not say is not allowed.
func (u *User) CheckBegin(words [][]byte, total int) Denial {
	if u.root().all() {
		return Denial{}
	}
	c := u.root().catalog.look(words, total)
	if c.free {
		return Denial{}
	}
	worst := Denial{}
	for _, s := range u.selectors {
		d := s.check(c)
		if d.Cause == Nothing {
			return Denial{}
		}
		if d.Cause > worst.Cause || d.Cause == worst.Cause && d.place > worst.place {
			worst = d
		}
	}
	return worst
}

// look finds out what a command uses.
func (c *Catalog) look(words [][]byte, total int) call {
	e, known := c.find(words)
	found := call{words: words, name: syntax.Lower(words[0])}
	if e != nil {
		found.name = e.name
	}
	if !known {
		return found
	}
	found.entry = e
	if found.free = IsFree(words[0]); found.free {
		return found
	}
	found.channels, found.globs = channelsOf(e, words)
	found.unclear = e.opaque || len(words) < total && found.channels != nil
	if e.keys == nil {
		return found
	}
	places, known := e.keys.Places(words, total)
	found.unclear = found.unclear || !known || places.Last() >= len(words)
	found.keys = usesOf(e, words, places)
	if len(words) < total {
		for i := range found.keys { // an option further on may ask for more
			found.keys[i].access = spec.Takes | spec.Changes
		}
	}
	return found
}

// IsFree reports whether a command needs no right, and may come before a login.
func IsFree(name []byte) bool {
	switch syntax.Lower(name) {
	case "auth", "hello", "quit", "reset":
		return true
	}
	return false
}

// usesOf are the keys in these places, and what is done with them.
func usesOf(e *entry, words [][]byte, places keys.Places) (all []use) {
	for i := range places.All() {
		if i < len(words) {
			all = append(all, use{place: i})
		}
	}
	slices.SortFunc(all, func(a, b use) int { return a.place - b.place })
	first, others := e.access, e.access
	if !e.own {
		first, others = spec.AccessOf(e.name, words)
	}
	for i := range all {
		if all[i].access = others; i == 0 {
			all[i].access = first
		}
	}
	return all
}

// channelsOf are the places of the channels that a command subscribes to or writes to, and whether
// these are globs.
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

// check says whether these rules allow a command.
func (s *selector) check(c call) Denial {
	if !s.mayCall(c.entry, c.words) {
		return Denial{Cause: Command, Name: c.name}
	}
	if c.unclear && !(s.allKeys && s.allChannels) {
		return Denial{Cause: Key}
	}
	for _, k := range c.keys {
		if !s.mayUse(c.words[k.place], k.access) {
			return Denial{Key, string(c.words[k.place]), k.place}
		}
	}
	for _, i := range c.channels {
		if !s.mayHear(c.words[i], c.globs) {
			return Denial{Channel, string(c.words[i]), i}
		}
	}
	return Denial{}
}

// MayAll reports whether the user may do everything.
func (u *User) MayAll() bool {
	return slices.ContainsFunc(u.selectors, (*selector).all)
}

// MayRead reports whether the user may know what a key holds, by whatever command.
func (u *User) MayRead(key string) bool {
	return slices.ContainsFunc(u.selectors, func(s *selector) bool { return s.mayUse([]byte(key), spec.Takes) })
}

// Beyond says why a user may not have the upstream carry out a command that it may send: because
// that could use more than its words name, and a Redis would look at that as the user, where the
// upstream knows only the proxy. It is empty where nothing is against it.
func (u *User) Beyond(words [][]byte) string {
	if u.MayAll() {
		return ""
	}
	switch name := syntax.Lower(words[0]); name {
	case "eval", "evalsha", "eval_ro", "evalsha_ro", "fcall", "fcall_ro":
		return fmt.Sprintf("NOPERM this user has no permissions to run the '%s' command at the upstream: what a script does there is not looked at, so it takes ~* &* +@all", name)
	case "sort", "sort_ro":
		return u.beyondSort(words)
	}
	return ""
}

// beyondSort is about BY and GET, which read keys by a pattern.
func (u *User) beyondSort(words [][]byte) string {
	if slices.ContainsFunc(u.selectors, func(s *selector) bool {
		return s.readsAll() && s.check(s.catalog.look(words, len(words))).Cause == Nothing
	}) {
		return ""
	}
	for i := 2; i < len(words); i++ {
		switch option := syntax.Folded(words[i]); option {
		case "limit":
			i += 2
		case "store":
			i++
		case "by", "get":
			if i++; i < len(words) && (option == "get" || slices.Contains(words[i], '*')) {
				return fmt.Sprintf("ERR %s option of SORT denied due to insufficient ACL permissions", map[string]string{"by": "BY", "get": "GET"}[option])
			}
		}
	}
	return ""
}

// readsAll reports whether every key may be read.
func (s *selector) readsAll() bool {
	return s.allKeys || slices.ContainsFunc(s.keys, func(p keyPattern) bool { return p.glob == "*" && p.access&spec.Takes != 0 })
}
