package cell

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"sync/atomic"
)

const (
	proxyDigits   = 24
	counterDigits = 12
	idDigits      = proxyDigits + counterDigits
)

// Attempt identifies one attempt to create a cell, and the incarnation of that cell. It has 36
// digits; empty means none.
type Attempt string

// Ballot orders the attempts to replace the value of a cell. It has 36 digits. The empty ballot
// means none, and is lower than all other ballots. No two proxies use the same ballot.
type Ballot string

var noBallot = strings.Repeat("0", idDigits)

func (b Ballot) digits() string {
	if b == "" {
		return noBallot
	}
	return string(b)
}

func parseBallot(text string) Ballot {
	if text == noBallot {
		return ""
	}
	return Ballot(text)
}

// Round returns the number that orders the ballot; the proxy's number breaks ties. A text that
// is too short for a ballot has round 0.
func (b Ballot) Round() uint64 {
	if len(b) < counterDigits {
		return 0
	}
	n, _ := strconv.ParseUint(string(b[:counterDigits]), 10, 64)
	return n
}

// Change identifies one replacement of a value: 8 bytes for its proxy, and a counter of 4 bytes.
type Change string

// NoChange is a change that no value has.
const NoChange Change = "-"

const (
	changeProxySize = 8
	changeSize      = changeProxySize + 4
)

func (c Change) proxy() string { return string(c[:changeProxySize]) }

// Source generates unique attempts, ballots and changes for one run of a proxy. It is safe for
// concurrent use.
type Source struct {
	proxy      string
	proxyBytes [changeProxySize]byte
	counter    atomic.Uint64
}

// NewSource returns a source with a random number of 79 bits.
func NewSource() *Source {
	limit := new(big.Int).Exp(big.NewInt(10), big.NewInt(proxyDigits), nil)
	n, err := rand.Int(rand.Reader, limit)
	if err != nil {
		panic(err) // crypto/rand never fails
	}
	return NumberedSource(n)
}

// NumberedSource returns a source with a given number, for reproducible tests and the explorer.
func NumberedSource(n *big.Int) *Source {
	s := &Source{proxy: fmt.Sprintf("%0*s", proxyDigits, n)}
	binary.BigEndian.PutUint64(s.proxyBytes[:], new(big.Int).Mod(n, new(big.Int).Lsh(big.NewInt(1), 64)).Uint64())
	return s
}

// Attempt returns a new attempt.
func (s *Source) Attempt() Attempt {
	return Attempt(appendPadded(append(make([]byte, 0, idDigits), s.proxy...), s.counter.Add(1)))
}

// Ballot returns this source's ballot of a round.
func (s *Source) Ballot(round uint64) Ballot { return Ballot(zeroPadded(round) + s.proxy) }

// Change returns a new change.
func (s *Source) Change() Change {
	var b [changeSize]byte
	copy(b[:], s.proxyBytes[:])
	binary.BigEndian.PutUint32(b[changeProxySize:], uint32(s.counter.Add(1)))
	return Change(b[:])
}

func zeroPadded(n uint64) string { return string(appendPadded(nil, n)) }

// appendPadded appends the number in counterDigits digits.
func appendPadded(b []byte, n uint64) []byte {
	var digits [counterDigits]byte
	for i := len(digits) - 1; i >= 0; i-- {
		digits[i] = byte('0' + n%10)
		n /= 10
	}
	return append(b, digits[:]...)
}

func isID(text string) bool {
	if len(text) != idDigits {
		return false
	}
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return false
		}
	}
	return true
}
