package acl

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Set is the users of a file. It is never changed.
type Set struct {
	catalog *Catalog
	byName  map[string]*User
}

// Parse reads a file; name is what errors call it. The error lists everything that is wrong, in
// Redis' words, with the lines, as Redis does, and never a password.
func Parse(name, text string, catalog *Catalog) (*Set, error) {
	s := &Set{catalog, map[string]*User{}}
	var wrong []string
	for i, line := range strings.Split(text, "\n") {
		line = strings.Trim(line, " \t\r")
		if line == "" {
			continue
		}
		wrong = append(wrong, s.line(fmt.Sprintf("%s:%d", name, i+1), i+1, line)...)
	}
	if len(wrong) > 0 {
		return nil, errors.New(strings.Join(wrong, " "))
	}
	if s.byName[DefaultUser] == nil {
		s.byName[DefaultUser] = openDefault(catalog)
	}
	return s, nil
}

// line reads a line that is not empty, and gives what is wrong with it. at is where it stands.
func (s *Set) line(at string, number int, line string) (wrong []string) {
	words := strings.Split(line, " ")
	if words[0] != "user" || len(words) < 2 || words[1] == "" {
		return []string{at + " should start with user keyword followed by the username."}
	}
	name := words[1]
	switch {
	case hasBlank(name):
		return []string{fmt.Sprintf("'%s: username '%s' contains invalid characters.", at, name)}
	case s.byName[name] != nil:
		return []string{fmt.Sprintf("WARNING: Duplicate user '%s' found on line %d.", name, number)}
	}
	ops, whole := joinSelectors(words[2:])
	if !whole {
		return []string{at + ": Unmatched parenthesis in selector definition."}
	}
	u, reported := newUser(name, s.catalog), false
	for _, op := range ops {
		switch err := u.apply(strings.Trim(op, "\t\r\n")); {
		case errors.Is(err, errUnknown):
			wrong = append(wrong, fmt.Sprintf("%s: Error in applying operation '%s': %v.", at, op, err))
		case err != nil && !reported: // once a line
			reported = true
			wrong = append(wrong, fmt.Sprintf("%s: %v.", at, err))
		}
	}
	u.source = hashOf([]byte(strings.Join(ops, " ")))
	s.byName[name] = u
	return wrong
}

// joinSelectors puts together what stands in parentheses.
func joinSelectors(words []string) (ops []string, whole bool) {
	open := ""
	for _, w := range words {
		switch {
		case open != "":
			open += " " + w
		case strings.HasPrefix(w, "("):
			open = w
		default:
			ops = append(ops, w)
			continue
		}
		if strings.HasSuffix(open, ")") {
			ops, open = append(ops, open), ""
		}
	}
	return ops, open == ""
}

// Find is the user of that name, or nil.
func (s *Set) Find(name string) *User { return s.byName[name] }

// All are the users, by name.
func (s *Set) All() (all []*User) {
	for _, name := range slices.Sorted(maps.Keys(s.byName)) {
		all = append(all, s.byName[name])
	}
	return all
}

// Catalog is what its rules may name.
func (s *Set) Catalog() *Catalog { return s.catalog }

// IsOpen reports whether clients are somebody without a login.
func (s *Set) IsOpen() bool {
	u := s.byName[DefaultUser]
	return u.On && u.NoPass
}

// After has users that are the same as in the set before be the very same, so that it is plain who
// was changed.
func (s *Set) After(before *Set) {
	if before == nil || before.catalog != s.catalog {
		return
	}
	for name, u := range s.byName {
		if was := before.byName[name]; was != nil && was.source == u.source {
			s.byName[name] = was
		}
	}
}
