package cell

import (
	"crypto/sha256"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"time"
)

// Endless is the remaining time of what has no expiry.
const Endless time.Duration = -1

// NotReported is a remaining time that a master did not report.
const NotReported time.Duration = -2

// Form is in which form a master holds a cell.
type Form byte

const (
	Absent   Form = iota // there is no such key
	Plain                // as its creator left it
	Register             // a ballot was promised there
	Blocking             // left by a catch-up: it refuses a SET NX, and is no vote
	Foreign              // written by a client itself
	Mark                 // keeps the place of an incarnation that is to be restored here: it is no vote, and counts as absent
)

// Cell is what one master holds under a key.
type Cell struct {
	Form Form
	// Attempt is the incarnation; none where the cell is absent or foreign.
	Attempt Attempt
	// Promised and Accepted are of the register form. A mark has what distinguishes it from all
	// others in Promised.
	Promised, Accepted Ballot
	// Value is the token of a plain cell, the value of one in register form, and the
	// text of a foreign one.
	Value Value
}

// Incarnation is what all copies of the cell have in common: the attempt that created it; of a
// foreign value, and of blocking copies of it, a number of its text.
func (c Cell) Incarnation() Attempt {
	if c.Form != Foreign {
		return c.Attempt
	}
	sum := sha256.Sum256([]byte(c.Value.Text))
	n := new(big.Int).Mod(new(big.Int).SetBytes(sum[:]), new(big.Int).Exp(big.NewInt(10), big.NewInt(idDigits), nil))
	return Attempt(fmt.Sprintf("%0*s", idDigits, n))
}

// Undecided is the incarnation of a blocking copy that stands for several, of which nobody can know
// which one was granted. What is released or undone by name leaves it: it ends with its time, as
// the last of theirs would.
const Undecided = Attempt("000000000000000000000000000000000000")

// IsUndecided reports whether the cell is a blocking copy that may stand for any incarnation.
func (c Cell) IsUndecided() bool { return c.Form == Blocking && c.Attempt == Undecided }

// Holds reports whether the cell is one of this incarnation that may count for it.
func (c Cell) Holds(a Attempt) bool { return (c.Form == Plain || c.Form == Register) && c.Attempt == a }

// Settled reports whether no ballot may be under way at the cell: none was promised, or the last
// one is accepted.
func (c Cell) Settled() bool { return c.Form != Register || c.Promised == c.Accepted }

// Value is what a register holds.
type Value struct {
	// Present is false where the key was removed by a ballot.
	Present bool
	Text    string
	// Rest is how many bytes are behind Text that were not read; a value with a rest is for looking
	// at alone.
	Rest int
	// Changes are those that led to the value: of each proxy its last one, the newest
	// last, of at most MaxChanges proxies.
	Changes []Change
}

// MaxChanges bounds the changes that a value remembers.
const MaxChanges = 32

// Follow is the value with a change that led to it added to those before.
func (v Value) Follow(before Value, by Change) Value {
	others := slices.DeleteFunc(slices.Clone(before.Changes), func(c Change) bool { return c.proxy() == by.proxy() })
	v.Changes = append(others, by)
	if n := len(v.Changes); n > MaxChanges {
		v.Changes = v.Changes[n-MaxChanges:]
	}
	return v
}

// Last is the change that led to the value, or none.
func (v Value) Last() Change {
	if len(v.Changes) == 0 {
		return ""
	}
	return v.Changes[len(v.Changes)-1]
}

// Knows reports whether the changes show whether this one, the last that its proxy has tried, led
// to the value: they do unless so many other proxies made changes since that it would be forgotten.
func (v Value) Knows(of Change) bool {
	return len(v.Changes) < MaxChanges || slices.ContainsFunc(v.Changes, func(c Change) bool { return c.proxy() == of.proxy() })
}

const (
	plainMark    = "#p"
	registerMark = "#r"
	blockingMark = "#b"
	placeMark    = "#m"
	markSize     = 2

	plainHead    = markSize + idDigits
	promiseHead  = markSize + 2*idDigits
	registerHead = markSize + 3*idDigits
)

// Envelope is a plain cell as a master holds it.
func Envelope(a Attempt, token string) string { return plainMark + string(a) + token }

// String is the cell as a master holds it; empty for an absent one.
func (c Cell) String() string {
	switch c.Form {
	case Plain:
		return Envelope(c.Attempt, c.Value.Text)
	case Register:
		return registerMark + string(c.Attempt) + c.Promised.wire() + c.Accepted.wire() + c.Value.payload()
	case Blocking:
		return blockingMark + string(c.Attempt)
	case Mark:
		return placeMark + string(c.Attempt) + c.Promised.wire()
	case Foreign:
		return c.Value.Text
	default:
		return ""
	}
}

// payload is the value behind the head of a cell in register form.
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

// Parse reads the value of a key. What no proxy wrote is foreign.
func Parse(text string) Cell {
	if len(text) >= plainHead && isID(text[markSize:plainHead]) {
		attempt := Attempt(text[markSize:plainHead])
		switch rest := text[plainHead:]; text[:markSize] {
		case plainMark:
			return Cell{Form: Plain, Attempt: attempt, Value: Value{Present: true, Text: rest}}
		case blockingMark:
			if rest == "" {
				return Cell{Form: Blocking, Attempt: attempt}
			}
		case placeMark:
			if isID(rest) {
				return Cell{Form: Mark, Attempt: attempt, Promised: ballotOf(rest)}
			}
		case registerMark:
			if c, ok := parseRegister(attempt, rest); ok {
				return c
			}
		}
	}
	return Cell{Form: Foreign, Value: Value{Present: true, Text: text}}
}

func parseRegister(a Attempt, rest string) (Cell, bool) {
	if len(rest) < 2*idDigits+3 || !isID(rest[:idDigits]) || !isID(rest[idDigits:2*idDigits]) {
		return Cell{}, false
	}
	c := Cell{Form: Register, Attempt: a, Promised: ballotOf(rest[:idDigits]), Accepted: ballotOf(rest[idDigits : 2*idDigits])}
	rest = rest[2*idDigits:]
	n, err := strconv.ParseUint(rest[1:3], 10, 8)
	if err != nil || n > MaxChanges || len(rest) < 3+changeSize*int(n) || rest[0] != 'v' && rest[0] != '-' {
		return Cell{}, false
	}
	c.Value.Present = rest[0] == 'v'
	rest = rest[3:]
	for range n {
		c.Value.Changes = append(c.Value.Changes, Change(rest[:changeSize]))
		rest = rest[changeSize:]
	}
	c.Value.Text = rest
	return c, true
}
