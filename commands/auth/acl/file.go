package acl

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Set holds the users of a file. Only ReuseUnchanged changes it, before the Set is in use.
type Set struct {
	catalog *Catalog
	byName  map[string]*User
}

// maxMistakes limits the mistakes that an error lists.
const maxMistakes = 100

// Parse reads a file. name is the name of the file in errors. The error lists the first mistakes in
// Redis' wording, with their lines, but never a password.
func Parse(name, text string, catalog *Catalog) (*Set, error) {
	s := &Set{catalog, map[string]*User{}}
	var errorTexts []string
	i := -1
	for line := range strings.SplitSeq(text, "\n") {
		i++
		line = strings.Trim(line, " \t\r")
		if line == "" {
			continue
		}
		if len(errorTexts) >= maxMistakes {
			errorTexts = append(errorTexts[:maxMistakes], "Further lines were not read.")
			break
		}
		errorTexts = append(errorTexts, s.parseLine(fmt.Sprintf("%s:%d", name, i+1), i+1, line)...)
	}
	if len(errorTexts) > 0 {
		return nil, errors.New(strings.Join(errorTexts, " "))
	}
	if s.byName[DefaultUser] == nil {
		s.byName[DefaultUser] = newDefaultUser(catalog)
	}
	return s, nil
}

// parseLine reads a line that is not empty, and returns its mistakes. at is its position.
func (s *Set) parseLine(at string, number int, line string) (errorTexts []string) {
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
	ops, complete := joinSelectors(words[2:])
	if !complete {
		return []string{at + ": Unmatched parenthesis in selector definition."}
	}
	u, reported := newUser(name, s.catalog), false
	for _, op := range ops {
		switch err := u.apply(strings.Trim(op, "\t\r\n")); {
		case errors.Is(err, errUnknown):
			errorTexts = append(errorTexts, fmt.Sprintf("%s: Error in applying operation '%s': %v.", at, op, err))
		case err != nil && !reported: // only the first such error of a line
			reported = true
			errorTexts = append(errorTexts, fmt.Sprintf("%s: %v.", at, err))
		}
	}
	u.rulesHash = hashOf([]byte(strings.Join(ops, " ")))
	s.byName[name] = u
	return errorTexts
}

// joinSelectors joins the words of each selector. complete is false if a parenthesis is not closed.
func joinSelectors(words []string) (ops []string, complete bool) {
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

// Find returns the user with this name, or nil.
func (s *Set) Find(name string) *User { return s.byName[name] }

// All returns the users, sorted by name.
func (s *Set) All() (users []*User) {
	for _, name := range slices.Sorted(maps.Keys(s.byName)) {
		users = append(users, s.byName[name])
	}
	return users
}

// Catalog returns the commands that the rules may name.
func (s *Set) Catalog() *Catalog { return s.catalog }

// IsOpen reports whether clients need no login.
func (s *Set) IsOpen() bool {
	u := s.byName[DefaultUser]
	return u.Enabled && u.NoPass
}

// ReuseUnchanged replaces each unchanged user by the same user of the previous set. Equal pointers
// then mean that a user is unchanged.
func (s *Set) ReuseUnchanged(before *Set) {
	if before == nil || before.catalog != s.catalog {
		return
	}
	for name, u := range s.byName {
		if old := before.byName[name]; old != nil && old.rulesHash == u.rulesHash {
			s.byName[name] = old
		}
	}
}
