package acl

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"slices"
	"strings"

	"redlock-proxy/commands/catalog/syntax"
)

// User describes a user of the file. It is immutable once Parse has returned.
type User struct {
	// Name is the name of the user.
	Name string
	// Enabled is set if the user may log in. NoPass is set if every password is valid.
	Enabled, NoPass bool

	skipSanitize bool     // skip-sanitize-payload, which has no effect
	hashes       []string // SHA-256 of the passwords, in lower-case hexadecimal
	selectors    []*selector
	rulesHash    string // a hash of the rules as written
}

// DefaultUser is the user of clients without a login, if it requires no password.
const DefaultUser = "default"

// newUser returns a user without permissions.
func newUser(name string, c *Catalog) *User {
	return &User{Name: name, selectors: []*selector{newSelector(c)}}
}

// newDefaultUser returns the default user for a file without one. As in Redis it has all
// permissions.
func newDefaultUser(c *Catalog) *User {
	u := newUser(DefaultUser, c)
	for _, op := range []string{"on", "nopass", "~*", "&*", "+@all"} {
		_ = u.apply(op)
	}
	u.rulesHash = hashOf([]byte(u.Describe()))
	return u
}

// UserWithoutPassword returns a user for which no password is valid.
func UserWithoutPassword() *User { return &User{hashes: []string{strings.Repeat("0", 2*sha256.Size)}} }

// rootSelector returns the selector for the rules without parentheses.
func (u *User) rootSelector() *selector { return u.selectors[0] }

// apply applies one rule to a user that is not yet in use.
func (u *User) apply(op string) error {
	switch word := syntax.Lower(op); {
	case word == "":
	case word == "on":
		u.Enabled = true
	case word == "off":
		u.Enabled = false
	case word == "nopass":
		u.NoPass, u.hashes = true, nil
	case word == "resetpass":
		u.NoPass, u.hashes = false, nil
	case word == "sanitize-payload":
		u.skipSanitize = false
	case word == "skip-sanitize-payload":
		u.skipSanitize = true
	case word == "clearselectors":
		u.selectors = u.selectors[:1]
	case word == "reset":
		*u = *newUser(u.Name, u.rootSelector().catalog)
	case op[0] == '(' && op[len(op)-1] == ')':
		return u.addSelector(op[1 : len(op)-1])
	case strings.IndexByte("><#!", op[0]) >= 0:
		return u.changePassword(op[0], op[1:])
	default:
		return u.rootSelector().apply(op)
	}
	return nil
}

func (u *User) addSelector(ops string) error {
	s := newSelector(u.rootSelector().catalog)
	for op := range strings.FieldsSeq(ops) {
		if err := s.apply(op); err != nil {
			return err
		}
	}
	u.selectors = append(u.selectors, s)
	return nil
}

// changePassword adds or removes a password, given in plain text (> and <) or by its hash (# and
// !).
func (u *User) changePassword(sign byte, text string) error {
	hash := text
	if sign == '>' || sign == '<' {
		hash = hashOf([]byte(text))
	} else if !isHash(text) {
		return errHash
	}
	at := slices.Index(u.hashes, hash)
	switch {
	case sign == '>' || sign == '#':
		if u.NoPass = false; at < 0 {
			u.hashes = append(u.hashes, hash)
		}
	case at < 0:
		return errNoPassword
	default:
		u.hashes = slices.Delete(u.hashes, at, at+1)
	}
	return nil
}

func hashOf(password []byte) string {
	sum := sha256.Sum256(password)
	return hex.EncodeToString(sum[:])
}

func isHash(text string) bool {
	return len(text) == 2*sha256.Size && strings.Trim(text, "0123456789abcdef") == ""
}

// PasswordHash holds the hash of the password with which a client has logged in. It is empty if the
// login needed no password. AcceptsPasswordHash uses it to check the login again.
type PasswordHash string

// CheckPassword reports whether a password is valid. The duration of the check does not reveal the
// passwords.
func (u *User) CheckPassword(password []byte) (passwordHash PasswordHash, ok bool) {
	given := hashOf(password)
	for _, hash := range u.hashes {
		if subtle.ConstantTimeCompare([]byte(given), []byte(hash)) == 1 {
			passwordHash, ok = PasswordHash(given), true
		}
	}
	return passwordHash, u.Enabled && (ok || u.NoPass)
}

// AcceptsPasswordHash reports whether a login with the password of this hash would be accepted now.
func (u *User) AcceptsPasswordHash(passwordHash PasswordHash) bool {
	return u.Enabled && (u.NoPass || slices.Contains(u.hashes, string(passwordHash)))
}

// Hashes returns the SHA-256 hashes of the user's passwords, in hexadecimal.
func (u *User) Hashes() []string { return slices.Clone(u.hashes) }

// Flags returns the user's flags, as the file spells them.
func (u *User) Flags() []string {
	flags := []string{map[bool]string{true: "on", false: "off"}[u.Enabled]}
	if u.NoPass {
		flags = append(flags, "nopass")
	}
	if u.skipSanitize {
		flags = append(flags, "skip-sanitize-payload")
	}
	return flags
}

// Describe returns the user as a line of the file.
func (u *User) Describe() string {
	parts := append([]string{"user", u.Name}, u.Flags()...)
	for _, hash := range u.hashes {
		parts = append(parts, "#"+hash)
	}
	parts = append(parts, u.rootSelector().describe())
	for _, s := range u.selectors[1:] {
		parts = append(parts, "("+s.describe()+")")
	}
	return strings.Join(parts, " ")
}

// Rules holds the rules of one selector, as ACL GETUSER returns them.
type Rules struct{ Commands, Keys, Channels string }

// Rules returns the rules without parentheses, then the rules of each selector in parentheses.
func (u *User) Rules() (ruleSets []Rules) {
	for _, s := range u.selectors {
		ruleSets = append(ruleSets, Rules{s.describeCommands(), s.describeKeys(), s.describeChannels(false)})
	}
	return ruleSets
}
