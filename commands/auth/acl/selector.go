package acl

import (
	"slices"
	"strings"

	"redlock-proxy/commands/catalog/keys"
	"redlock-proxy/commands/catalog/spec"
	"redlock-proxy/commands/catalog/syntax"
)

// mistake is an error of a rule, in Redis' words.
type mistake string

// Error is the text.
func (m mistake) Error() string { return string(m) }

// The mistakes that there are.
const (
	errSyntax     mistake = "Syntax error"
	errUnknown    mistake = "Unknown command or category name in ACL"
	errAfterKeys  mistake = "Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and does not have any effect. Try 'resetkeys' to start with an empty list of patterns"
	errAfterAll   mistake = "Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid and does not have any effect. Try 'resetchannels' to start with an empty list of channels"
	errNoPassword mistake = "The password you are trying to remove from the user does not exist"
	errHash       mistake = "The password hash must be exactly 64 characters and contain only lowercase hexadecimal characters"
	errFirstArg   mistake = "Allowing first-arg of a subcommand is not supported"
)

// keyPattern is a glob of keys, and what may be done with them.
type keyPattern struct {
	glob   string
	access spec.Access
}

// selector is one set of rules of a user: who may do something by one of them may do it.
type selector struct {
	catalog     *Catalog
	allCommands bool // also those that are not known
	allKeys     bool
	allChannels bool
	allowed     map[int]bool     // by the commands' bits
	firstArgs   map[int][]string // of commands that are not allowed: first arguments with which they are
	keys        []keyPattern
	channels    []string
	fromAll     bool     // rules are about all commands, else about none
	rules       []string // about commands, as they are told
}

func newSelector(c *Catalog) *selector {
	return &selector{catalog: c, allowed: map[int]bool{}, firstArgs: map[int][]string{}}
}

// apply applies one rule.
func (s *selector) apply(op string) error {
	switch word := syntax.Lower(op); {
	case word == "allkeys" || word == "~*":
		s.allKeys, s.keys = true, nil
	case word == "resetkeys":
		s.allKeys, s.keys = false, nil
	case word == "allchannels" || word == "&*":
		s.allChannels, s.channels = true, nil
	case word == "resetchannels":
		s.allChannels, s.channels = false, nil
	case word == "allcommands" || word == "+@all":
		s.every(true)
	case word == "nocommands" || word == "-@all":
		s.every(false)
	case op[0] == '~' || op[0] == '%':
		return s.addKeys(op)
	case op[0] == '&':
		return s.addChannels(op[1:])
	case strings.HasPrefix(word, "+@"), strings.HasPrefix(word, "-@"):
		return s.category(word)
	case word[0] == '+':
		return s.allow(op[1:])
	case word[0] == '-':
		return s.deny(word[1:])
	default:
		return errSyntax
	}
	return nil
}

// every allows or denies all commands.
func (s *selector) every(allowed bool) {
	s.allCommands, s.fromAll, s.rules = allowed, allowed, nil
	clear(s.allowed)
	clear(s.firstArgs)
	if allowed {
		for _, e := range s.catalog.all {
			s.allowed[e.bit] = true
		}
	}
}

// hasBlank reports what Redis takes for spaces, and zero bytes.
func hasBlank(text string) bool { return strings.ContainsAny(text, " \t\n\v\f\r\x00") }

// addKeys is ~glob, or %R~glob, %W~glob, %RW~glob.
func (s *selector) addKeys(op string) error {
	if s.allKeys {
		return errAfterKeys
	}
	access, glob := spec.Takes|spec.Changes, op[1:]
	if op[0] == '%' {
		letters, rest, _ := strings.Cut(op[1:], "~")
		glob = rest
		switch syntax.Lower(letters) {
		case "r":
			access = spec.Takes
		case "w":
			access = spec.Changes
		case "rw", "wr":
		default:
			return errSyntax
		}
	}
	if hasBlank(glob) {
		return errSyntax
	}
	for i, p := range s.keys {
		if p.glob == glob {
			s.keys[i].access |= access
			return nil
		}
	}
	s.keys = append(s.keys, keyPattern{glob, access})
	return nil
}

func (s *selector) addChannels(glob string) error {
	switch {
	case s.allChannels:
		return errAfterAll
	case hasBlank(glob):
		return errSyntax
	case !slices.Contains(s.channels, glob):
		s.channels = append(s.channels, glob)
	}
	return nil
}

// category is +@category or -@category.
func (s *selector) category(op string) error {
	in := spec.CategoriesOf(op[2:])
	if in == 0 {
		return errUnknown
	}
	allowed := op[0] == '+'
	for _, e := range s.catalog.all {
		if e.categories&in != 0 || !allowed && e.categories == 0 {
			s.set(e, allowed)
		}
	}
	s.note(op[:1], op[1:])
	return nil
}

// set allows or denies a command with its subcommands.
func (s *selector) set(e *entry, allowed bool) {
	if delete(s.firstArgs, e.bit); allowed {
		s.allowed[e.bit] = true
	} else {
		delete(s.allowed, e.bit)
		s.allCommands = false
	}
	for _, sub := range e.subs {
		s.set(sub, allowed)
	}
}

// allow is +command, +command|subcommand, or +command|argument.
func (s *selector) allow(name string) error {
	cut := strings.LastIndexByte(name, '|')
	if cut < 0 {
		e := s.catalog.byName[syntax.Lower(name)]
		if e == nil {
			return errUnknown
		}
		s.set(e, true)
		s.note("+", e.name)
		return nil
	}
	e := s.catalog.byName[syntax.Lower(name[:cut])]
	switch {
	case e == nil:
		return errUnknown
	case e.parent != nil:
		return errFirstArg
	case cut == len(name)-1:
		return errSyntax
	case e.subs != nil:
		sub := e.subs[syntax.Lower(name[cut+1:])]
		if sub == nil {
			return errUnknown
		}
		s.set(sub, true)
		s.note("+", sub.name)
		return nil
	}
	if first := name[cut+1:]; !slices.Contains(s.firstArgs[e.bit], first) {
		s.firstArgs[e.bit] = append(s.firstArgs[e.bit], first)
		s.note("+", e.name+"|"+first)
	}
	return nil
}

// deny is -command or -command|subcommand.
func (s *selector) deny(name string) error {
	e := s.catalog.byName[name]
	if e == nil {
		return errUnknown
	}
	s.set(e, false)
	s.note("-", e.name)
	return nil
}

// note keeps a rule about commands, for ACL LIST.
func (s *selector) note(sign, what string) { s.rules = append(s.rules, sign+what) }

// mayCall reports whether the command is allowed; e is nil where it is not known.
func (s *selector) mayCall(e *entry, words [][]byte) bool {
	switch {
	case s.allCommands:
		return e != nil || s.allKeys && s.allChannels
	case e == nil:
		return false
	case s.allowed[e.bit]:
		return true
	case len(words) < 2:
		return false
	}
	given := syntax.Folded(words[1])
	return slices.ContainsFunc(s.firstArgs[e.bit], func(first string) bool { return syntax.Lower(first) == given })
}

// mayUse reports whether this may be done with a key.
func (s *selector) mayUse(key []byte, access spec.Access) bool {
	if s.allKeys {
		return true
	}
	return slices.ContainsFunc(s.keys, func(p keyPattern) bool { return p.access&access == access && keys.Match(p.glob, key) })
}

// mayHear reports whether a channel, or a glob of channels, is allowed: a glob only where it is
// listed itself.
func (s *selector) mayHear(channel []byte, isGlob bool) bool {
	if s.allChannels {
		return true
	}
	return slices.ContainsFunc(s.channels, func(glob string) bool {
		if isGlob {
			return glob == string(syntax.CString(channel, len(channel)))
		}
		return keys.Match(glob, channel)
	})
}

// all reports whether everything is allowed.
func (s *selector) all() bool { return s.allCommands && s.allKeys && s.allChannels }

// describe is the selector in the form of the file.
func (s *selector) describe() string {
	return strings.Join(slices.DeleteFunc([]string{s.describeKeys(), s.describeChannels(true), s.describeCommands()}, func(part string) bool { return part == "" }), " ")
}

func (s *selector) describeKeys() string {
	if s.allKeys {
		return "~*"
	}
	var parts []string
	for _, p := range s.keys {
		parts = append(parts, map[spec.Access]string{spec.Takes: "%R", spec.Changes: "%W"}[p.access]+"~"+p.glob)
	}
	return strings.Join(parts, " ")
}

// describeChannels is with the word that begins anew, or only the globs.
func (s *selector) describeChannels(anew bool) string {
	if s.allChannels {
		return "&*"
	}
	var parts []string
	if anew {
		parts = append(parts, "resetchannels")
	}
	for _, glob := range s.channels {
		parts = append(parts, "&"+glob)
	}
	return strings.Join(parts, " ")
}

// describeCommands begins with what holds for all commands: the rules are told from there on.
func (s *selector) describeCommands() string {
	base := "-@all"
	if s.fromAll {
		base = "+@all"
	}
	return strings.Join(append([]string{base}, s.rules...), " ")
}
