package marker

import (
	"crypto/rand"
	"strconv"
	"strings"
)

// Protocol is the number of the format and the meaning of the data that proxies of this version
// store on masters. It is part of the nonce of each marker and record; the nonce has the same
// position in all versions. A proxy does not change masters with a higher number.
//
// Protocol 1 has no number. Protocol 2 supports moves of the locks.
const Protocol = 2

// protocolSeparator precedes the number of the protocol in a nonce.
const protocolSeparator = "-"

// NewNonce returns a unique nonce.
func NewNonce() string { return rand.Text() + protocolSeparator + strconv.Itoa(Protocol) }

// ProtocolOf returns the highest protocol in a master's marker and record, or 1 if they contain
// none. It ignores all other parts of the texts.
func ProtocolOf(marker, record string) int {
	return max(protocolIn(marker, 2), protocolIn(record, 1))
}

// protocolIn returns the protocol in the nonce that follows the given number of fields.
func protocolIn(text string, fields int) int {
	words := strings.SplitN(text, " ", fields+2)
	if len(words) <= fields {
		return 1
	}
	// The nonce of a record ends with the number of the era, which does not count.
	nonce, _, _ := strings.Cut(words[fields], ".")
	_, number, _ := strings.Cut(nonce, protocolSeparator)
	n, _ := strconv.Atoi(number)
	return max(1, n)
}
