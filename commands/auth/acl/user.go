package acl

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"slices"
	"strings"

	"redlock-proxy/commands/catalog/syntax"
)

// User is what the file says of a user. It is never changed.
type User struct {
	// Name is the user's.
	Name string
	// On is set where logging in is possible, NoPass where any password is right.
	On, NoPass bool

	trusting  bool     // skip-sanitize-payload, which does nothing here
	hashes    []string // SHA-256 of the passwords, in lower-case hexadecimal
	selectors []*selector
	source    string // a hash of the rules as they were written
}

// DefaultUser is the user that clients are who have not logged in, if it needs no password.
const DefaultUser = "default"

// newUser makes one that may do nothing.
func newUser(name string, c *Catalog) *User {
	return &User{Name: name, selectors: []*selector{newSelector(c)}}
}

// openDefault is the default user of a file that says nothing of it: as in Redis it may do
// everything.
func openDefault(c *Catalog) *User {
	u := newUser(DefaultUser, c)
	for _, op := range []string{"on", "nopass", "~*", "&*", "+@all"} {
		_ = u.apply(op)
	}
	u.source = hashOf([]byte(u.Describe()))
	return u
}

// Nobody is a user as whom nobody can log in.
func Nobody() *User { return &User{hashes: []string{strings.Repeat("0", 2*sha256.Size)}} }

// root is the selector that rules without parentheses are about.
func (u *User) root() *selector { return u.selectors[0] }

// apply applies one rule. Before the file is read to its end, and only then, is a user changed.
func (u *User) apply(op string) error {
	switch word := syntax.Lower(op); {
	case word == "":
	case word == "on":
		u.On = true
	case word == "off":
		u.On = false
	case word == "nopass":
		u.NoPass, u.hashes = true, nil
	case word == "resetpass":
		u.NoPass, u.hashes = false, nil
	case word == "sanitize-payload":
		u.trusting = false
	case word == "skip-sanitize-payload":
		u.trusting = true
	case word == "clearselectors":
		u.selectors = u.selectors[:1]
	case word == "reset":
		*u = *newUser(u.Name, u.root().catalog)
	case op[0] == '(' && op[len(op)-1] == ')':
		return u.addSelector(op[1 : len(op)-1])
	case strings.IndexByte("><#!", op[0]) >= 0:
		return u.password(op[0], op[1:])
	default:
		return u.root().apply(op)
	}
	return nil
}

func (u *User) addSelector(ops string) error {
	s := newSelector(u.root().catalog)
	for op := range strings.FieldsSeq(ops) {
		if err := s.apply(op); err != nil {
			return err
		}
	}
	u.selectors = append(u.selectors, s)
	return nil
}

// password adds or removes one: given as it is (> and <), or by its hash (# and !).
func (u *User) password(sign byte, text string) error {
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

// Proof is how a client has shown to be a user, to be asked about again: the hash of its password,
// or nothing where none was needed.
type Proof string

// Fits reports whether a password is right, in a time that tells nothing of those that are.
func (u *User) Fits(password []byte) (proof Proof, ok bool) {
	given := hashOf(password)
	for _, hash := range u.hashes {
		if subtle.ConstantTimeCompare([]byte(given), []byte(hash)) == 1 {
			proof, ok = Proof(given), true
		}
	}
	return proof, u.On && (ok || u.NoPass)
}

// Stands reports whether a client that has once shown this could still log in with it.
func (u *User) Stands(proof Proof) bool {
	return u.On && (u.NoPass || slices.Contains(u.hashes, string(proof)))
}

// Hashes are the SHA-256 hashes of the user's passwords, in hexadecimal.
func (u *User) Hashes() []string { return slices.Clone(u.hashes) }

// Flags are the words of the file that are about the login.
func (u *User) Flags() []string {
	flags := []string{map[bool]string{true: "on", false: "off"}[u.On]}
	if u.NoPass {
		flags = append(flags, "nopass")
	}
	if u.trusting {
		flags = append(flags, "skip-sanitize-payload")
	}
	return flags
}

// Describe is the user as a line of the file.
func (u *User) Describe() string {
	parts := append([]string{"user", u.Name}, u.Flags()...)
	for _, hash := range u.hashes {
		parts = append(parts, "#"+hash)
	}
	parts = append(parts, u.root().describe())
	for _, s := range u.selectors[1:] {
		parts = append(parts, "("+s.describe()+")")
	}
	return strings.Join(parts, " ")
}

// Rules are what ACL GETUSER returns of one set of rules.
type Rules struct{ Commands, Keys, Channels string }

// Rules are the user's: those without parentheses, then the others.
func (u *User) Rules() (all []Rules) {
	for _, s := range u.selectors {
		all = append(all, Rules{s.describeCommands(), s.describeKeys(), s.describeChannels(false)})
	}
	return all
}
