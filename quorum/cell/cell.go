package cell

import (
	"crypto/sha256"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"time"
)

// NoExpiry is the remaining time of a key without expiry.
const NoExpiry time.Duration = -1

// NotReported is a remaining time that a master did not report.
const NotReported time.Duration = -2

// Form is the form in which a master holds a cell.
type Form byte

const (
	Absent   Form = iota // the key does not exist
	Plain                // unchanged since its creation
	Register             // the master promised a ballot
	Blocking             // created by a catch-up; refuses a SET NX, and does not vote
	Foreign              // written by a client on the master itself
	Mark                 // reserved for an incarnation to restore; counts as absent, does not vote
)

// Cell is the state of one key on one master.
type Cell struct {
	Form Form
	// Attempt is the incarnation, empty if the cell is absent or foreign.
	Attempt Attempt
	// Promised and Accepted are the ballots of a cell in register form. The unique ballot of a mark
	// is in Promised.
	Promised, Accepted Ballot
	// Value is the token of a plain cell, or the value in register form or of a foreign cell.
	Value Value
}

// Incarnation returns the attempt that all copies of the cell share. For a foreign value and its
// blocking copies it returns a number derived from the text.
func (c Cell) Incarnation() Attempt {
	if c.Form != Foreign {
		return c.Attempt
	}
	sum := sha256.Sum256([]byte(c.Value.Text))
	n := new(big.Int).Mod(new(big.Int).SetBytes(sum[:]), new(big.Int).Exp(big.NewInt(10), big.NewInt(idDigits), nil))
	return Attempt(fmt.Sprintf("%0*s", idDigits, n))
}

// UndecidedAttempt is the incarnation of a blocking copy that stands for several incarnations,
// because it is unknown which incarnation was granted. The copy expires with the last blocking copy
// of one of them.
const UndecidedAttempt = Attempt("000000000000000000000000000000000000")

// IsUndecided reports whether the cell is a blocking copy that may stand for any incarnation.
func (c Cell) IsUndecided() bool { return c.Form == Blocking && c.Attempt == UndecidedAttempt }

// Holds reports whether the cell votes for this incarnation.
func (c Cell) Holds(a Attempt) bool { return (c.Form == Plain || c.Form == Register) && c.Attempt == a }

// Settled reports whether no ballot may be under way: the cell promised none, or has accepted the
// ballot that it promised last.
func (c Cell) Settled() bool { return c.Form != Register || c.Promised == c.Accepted }

// Value is the value of a register.
type Value struct {
	// Present is false if a ballot removed the key.
	Present bool
	Text    string
	// UnreadBytes is the number of bytes after Text that were not read. A value with unread bytes
	// must not be written.
	UnreadBytes int
	// Changes holds the last change of each proxy that led to the value, for at most MaxChanges
	// proxies, the newest at the end.
	Changes []Change
}

// MaxChanges limits the changes that a value remembers.
const MaxChanges = 32

// WithChange returns v with the changes of the previous value, followed by change.
func (v Value) WithChange(previous Value, change Change) Value {
	otherChanges := slices.DeleteFunc(slices.Clone(previous.Changes), func(c Change) bool { return c.proxy() == change.proxy() })
	v.Changes = append(otherChanges, change)
	if n := len(v.Changes); n > MaxChanges {
		v.Changes = v.Changes[n-MaxChanges:]
	}
	return v
}

// LastChange returns the change that led to the value, or an empty change.
func (v Value) LastChange() Change {
	if len(v.Changes) == 0 {
		return ""
	}
	return v.Changes[len(v.Changes)-1]
}

// ShowsOutcomeOf reports whether Changes is complete enough to show if change led to the value.
// change must be the last change that its proxy tried. The result is false if MaxChanges other
// proxies may have changed the value since.
func (v Value) ShowsOutcomeOf(change Change) bool {
	return len(v.Changes) < MaxChanges ||
		slices.ContainsFunc(v.Changes, func(c Change) bool { return c.proxy() == change.proxy() })
}

const (
	plainTag    = "#p"
	registerTag = "#r"
	blockingTag = "#b"
	markTag     = "#m"
	tagSize     = 2

	plainHeadSize    = tagSize + idDigits
	promiseHeadSize  = tagSize + 2*idDigits
	registerHeadSize = tagSize + 3*idDigits
)

// EncodePlain returns a plain cell as a master stores it.
func EncodePlain(a Attempt, token string) string { return plainTag + string(a) + token }

// String returns the cell as a master stores it, or an empty text for an absent cell.
func (c Cell) String() string {
	switch c.Form {
	case Plain:
		return EncodePlain(c.Attempt, c.Value.Text)
	case Register:
		return registerTag + string(c.Attempt) + c.Promised.digits() + c.Accepted.digits() + c.Value.payload()
	case Blocking:
		return blockingTag + string(c.Attempt)
	case Mark:
		return markTag + string(c.Attempt) + c.Promised.digits()
	case Foreign:
		return c.Value.Text
	default:
		return ""
	}
}

// payload returns the part of a cell in register form after its ballots.
func (v Value) payload() string {
	state := "-"
	if v.Present {
		state = "v"
	}
	head := state + string([]byte{byte('0' + len(v.Changes)/10), byte('0' + len(v.Changes)%10)})
	for _, c := range v.Changes {
		head += string(c)
	}
	return head + v.Text
}

// Parse decodes the value of a key. A value that no proxy wrote is foreign.
func Parse(text string) Cell {
	if len(text) >= plainHeadSize && isID(text[tagSize:plainHeadSize]) {
		attempt := Attempt(text[tagSize:plainHeadSize])
		switch body := text[plainHeadSize:]; text[:tagSize] {
		case plainTag:
			return Cell{Form: Plain, Attempt: attempt, Value: Value{Present: true, Text: body}}
		case blockingTag:
			if body == "" {
				return Cell{Form: Blocking, Attempt: attempt}
			}
		case markTag:
			if isID(body) {
				return Cell{Form: Mark, Attempt: attempt, Promised: parseBallot(body)}
			}
		case registerTag:
			if c, ok := parseRegister(attempt, body); ok {
				return c
			}
		}
	}
	return Cell{Form: Foreign, Value: Value{Present: true, Text: text}}
}

func parseRegister(a Attempt, body string) (Cell, bool) {
	if len(body) < 2*idDigits+3 || !isID(body[:idDigits]) || !isID(body[idDigits:2*idDigits]) {
		return Cell{}, false
	}
	c := Cell{
		Form: Register, Attempt: a,
		Promised: parseBallot(body[:idDigits]), Accepted: parseBallot(body[idDigits : 2*idDigits]),
	}
	body = body[2*idDigits:]
	n, err := strconv.ParseUint(body[1:3], 10, 8)
	if err != nil || n > MaxChanges || len(body) < 3+changeSize*int(n) || body[0] != 'v' && body[0] != '-' {
		return Cell{}, false
	}
	c.Value.Present = body[0] == 'v'
	body = body[3:]
	for range n {
		c.Value.Changes = append(c.Value.Changes, Change(body[:changeSize]))
		body = body[changeSize:]
	}
	c.Value.Text = body
	return c, true
}
