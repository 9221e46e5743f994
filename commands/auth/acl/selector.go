package acl

import (
	"slices"
	"strings"

	"redlock-proxy/commands/catalog/keys"
	"redlock-proxy/commands/catalog/spec"
	"redlock-proxy/commands/catalog/syntax"
)

// ruleError is an error in a rule, in Redis' wording.
type ruleError string

// Error implements error.
func (m ruleError) Error() string { return string(m) }

// The errors in rules.
const (
	errSyntax       ruleError = "Syntax error"
	errUnknown      ruleError = "Unknown command or category name in ACL"
	errAfterAllKeys ruleError = "Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid " +
		"and does not have any effect. Try 'resetkeys' to start with an empty list of patterns"
	errAfterAllChannels ruleError = "Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid " +
		"and does not have any effect. Try 'resetchannels' to start with an empty list of channels"
	errNoPassword ruleError = "The password you are trying to remove from the user does not exist"
	errHash       ruleError = "The password hash must be exactly 64 characters and contain only lowercase " +
		"hexadecimal characters"
	errFirstArg ruleError = "Allowing first-arg of a subcommand is not supported"
)

// keyPattern holds a glob of keys, with the permitted accesses.
type keyPattern struct {
	glob   string
	access spec.Access
}

// selector holds a set of rules. A user may run a command if one of its selectors permits it.
type selector struct {
	catalog       *Catalog
	allCommands   bool // including unknown commands
	allKeys       bool
	allChannels   bool
	allowed       map[int]bool     // by the bit of the command
	firstArgs     map[int][]string // by the bit of a denied command: its allowed first arguments
	keys          []keyPattern
	channels      []string
	startsFromAll bool     // the rules start from all commands instead of none
	rules         []string // about commands, for ACL LIST
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
		s.setAll(true)
	case word == "nocommands" || word == "-@all":
		s.setAll(false)
	case op[0] == '~' || op[0] == '%':
		return s.addKeys(op)
	case op[0] == '&':
		return s.addChannels(op[1:])
	case strings.HasPrefix(word, "+@"), strings.HasPrefix(word, "-@"):
		return s.applyCategory(word)
	case word[0] == '+':
		return s.allow(op[1:])
	case word[0] == '-':
		return s.deny(word[1:])
	default:
		return errSyntax
	}
	return nil
}

// setAll allows or denies all commands.
func (s *selector) setAll(allowed bool) {
	s.allCommands, s.startsFromAll, s.rules = allowed, allowed, nil
	clear(s.allowed)
	clear(s.firstArgs)
	if allowed {
		for _, e := range s.catalog.entries {
			s.allowed[e.bit] = true
		}
	}
}

// hasBlank reports whether a text contains a zero byte or a character that Redis treats as a space.
func hasBlank(text string) bool { return strings.ContainsAny(text, " \t\n\v\f\r\x00") }

// addKeys applies ~glob, %R~glob, %W~glob or %RW~glob.
func (s *selector) addKeys(op string) error {
	if s.allKeys {
		return errAfterAllKeys
	}
	access, glob := spec.ReadsValue|spec.ChangesValue, op[1:]
	if op[0] == '%' {
		letters, rest, _ := strings.Cut(op[1:], "~")
		glob = rest
		switch syntax.Lower(letters) {
		case "r":
			access = spec.ReadsValue
		case "w":
			access = spec.ChangesValue
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
		return errAfterAllChannels
	case hasBlank(glob):
		return errSyntax
	case !slices.Contains(s.channels, glob):
		s.channels = append(s.channels, glob)
	}
	return nil
}

// applyCategory applies +@category or -@category.
func (s *selector) applyCategory(op string) error {
	in := spec.CategoriesOf(op[2:])
	if in == 0 {
		return errUnknown
	}
	allowed := op[0] == '+'
	for _, e := range s.catalog.entries {
		if e.categories&in != 0 || !allowed && e.categories == 0 {
			s.setCommand(e, allowed)
		}
	}
	s.recordRule(op[:1], op[1:])
	return nil
}

// setCommand allows or denies a command with its subcommands.
func (s *selector) setCommand(e *entry, allowed bool) {
	if delete(s.firstArgs, e.bit); allowed {
		s.allowed[e.bit] = true
	} else {
		delete(s.allowed, e.bit)
		s.allCommands = false
	}
	for _, sub := range e.subcommands {
		s.setCommand(sub, allowed)
	}
}

// allow applies +command, +command|subcommand, or +command|argument.
func (s *selector) allow(name string) error {
	cut := strings.LastIndexByte(name, '|')
	if cut < 0 {
		e := s.catalog.byName[syntax.Lower(name)]
		if e == nil {
			return errUnknown
		}
		s.setCommand(e, true)
		s.recordRule("+", e.name)
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
	case e.subcommands != nil:
		sub := e.subcommands[syntax.Lower(name[cut+1:])]
		if sub == nil {
			return errUnknown
		}
		s.setCommand(sub, true)
		s.recordRule("+", sub.name)
		return nil
	}
	if first := name[cut+1:]; !slices.Contains(s.firstArgs[e.bit], first) {
		s.firstArgs[e.bit] = append(s.firstArgs[e.bit], first)
		s.recordRule("+", e.name+"|"+first)
	}
	return nil
}

// deny applies -command or -command|subcommand.
func (s *selector) deny(name string) error {
	e := s.catalog.byName[name]
	if e == nil {
		return errUnknown
	}
	s.setCommand(e, false)
	s.recordRule("-", e.name)
	return nil
}

// recordRule records a rule about commands, for ACL LIST.
func (s *selector) recordRule(sign, name string) { s.rules = append(s.rules, sign+name) }

// mayCall reports whether the command is allowed; e is nil if the command is unknown.
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
	given := syntax.LowerCString(words[1])
	return slices.ContainsFunc(s.firstArgs[e.bit], func(first string) bool { return syntax.Lower(first) == given })
}

// mayUseKey reports whether an access to a key is allowed.
func (s *selector) mayUseKey(key []byte, access spec.Access) bool {
	if s.allKeys {
		return true
	}
	return slices.ContainsFunc(s.keys, func(p keyPattern) bool {
		return p.access&access == access && keys.Match(p.glob, key)
	})
}

// mayUseChannel reports whether a channel, or a glob of channels, is allowed. A glob is allowed
// only if a rule has the same glob.
func (s *selector) mayUseChannel(channel []byte, isGlob bool) bool {
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

// allowsAll reports whether the selector allows all commands, keys and channels.
func (s *selector) allowsAll() bool { return s.allCommands && s.allKeys && s.allChannels }

// describe returns the selector in the form of the file.
func (s *selector) describe() string {
	parts := []string{s.describeKeys(), s.describeChannels(true), s.describeCommands()}
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), " ")
}

func (s *selector) describeKeys() string {
	if s.allKeys {
		return "~*"
	}
	var parts []string
	for _, p := range s.keys {
		parts = append(parts, map[spec.Access]string{spec.ReadsValue: "%R", spec.ChangesValue: "%W"}[p.access]+"~"+p.glob)
	}
	return strings.Join(parts, " ")
}

// describeChannels returns the rules for channels. full adds resetchannels before the globs.
func (s *selector) describeChannels(full bool) string {
	if s.allChannels {
		return "&*"
	}
	var parts []string
	if full {
		parts = append(parts, "resetchannels")
	}
	for _, glob := range s.channels {
		parts = append(parts, "&"+glob)
	}
	return strings.Join(parts, " ")
}

// describeCommands returns the rules for commands, starting with the last rule for all commands.
func (s *selector) describeCommands() string {
	base := "-@all"
	if s.startsFromAll {
		base = "+@all"
	}
	return strings.Join(append([]string{base}, s.rules...), " ")
}
