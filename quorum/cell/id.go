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

// Attempt identifies one attempt to create a cell; it is the incarnation of the cell
// that it created. It has 36 digits, or is empty: none.
type Attempt string

// Ballot orders the attempts to replace what a cell holds. It has 36 digits, or is
// empty: none, which is below all others. No two proxies use the same.
type Ballot string

// noBallot is how the empty ballot is written.
var noBallot = strings.Repeat("0", idDigits)

// wire is the ballot as it is written.
func (b Ballot) wire() string {
	if b == "" {
		return noBallot
	}
	return string(b)
}

func ballotOf(text string) Ballot {
	if text == noBallot {
		return ""
	}
	return Ballot(text)
}

// Round is the part of the ballot that orders it before the proxy's number does.
func (b Ballot) Round() uint64 {
	if b == "" {
		return 0
	}
	n, _ := strconv.ParseUint(string(b[:counterDigits]), 10, 64)
	return n
}

// Change identifies one replacing: 8 bytes of its proxy, and a counter of 4.
type Change string

// NoChange is a change that led to no value.
const NoChange Change = "-"

const (
	changeMark = 8
	changeSize = changeMark + 4
)

// proxy is the part that is the same for all changes of one proxy.
func (c Change) proxy() string { return string(c[:changeMark]) }

// Source makes what must be unlike all others: it is one proxy's in one life. Its
// methods may be called concurrently.
type Source struct {
	proxy   string
	mark    [changeMark]byte
	counter atomic.Uint64
}

// NewSource makes a source with a random number of 79 bits.
func NewSource() *Source {
	limit := new(big.Int).Exp(big.NewInt(10), big.NewInt(proxyDigits), nil)
	n, err := rand.Int(rand.Reader, limit)
	if err != nil {
		panic(err) // crypto/rand never fails
	}
	return NumberedSource(n)
}

// NumberedSource is a source with a number of its caller's: for tests and the explorer,
// which need the same run twice.
func NumberedSource(n *big.Int) *Source {
	s := &Source{proxy: fmt.Sprintf("%0*s", proxyDigits, n)}
	binary.BigEndian.PutUint64(s.mark[:], new(big.Int).Mod(n, new(big.Int).Lsh(big.NewInt(1), 64)).Uint64())
	return s
}

// Attempt is a new one.
func (s *Source) Attempt() Attempt {
	return Attempt(appendFixed(append(make([]byte, 0, idDigits), s.proxy...), s.counter.Add(1)))
}

// Ballot is this source's in a round.
func (s *Source) Ballot(round uint64) Ballot { return Ballot(fixed(round) + s.proxy) }

// Change is a new one.
func (s *Source) Change() Change {
	var b [changeSize]byte
	copy(b[:], s.mark[:])
	binary.BigEndian.PutUint32(b[changeMark:], uint32(s.counter.Add(1)))
	return Change(b[:])
}

// fixed is the number in counterDigits digits.
func fixed(n uint64) string { return string(appendFixed(nil, n)) }

// appendFixed appends fixed.
func appendFixed(b []byte, n uint64) []byte {
	var digits [counterDigits]byte
	for i := len(digits) - 1; i >= 0; i-- {
		digits[i] = byte('0' + n%10)
		n /= 10
	}
	return append(b, digits[:]...)
}

// isID reports whether text has the form of an attempt or a ballot.
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
