package marker

import (
	"crypto/rand"
	"strconv"
	"strings"
)

// Protocol is the number of what proxies of this version do on masters: the form of what they leave
// there, and what they take it for. It is part of the nonce of each marker and record, whose place
// in these is the same in all versions. A proxy leaves masters alone on which it finds a higher
// one.
//
// Protocol 1 has no number. Protocol 2 knows that locks can be moved.
const Protocol = 2

// before is in a nonce before the number of its protocol.
const before = "-"

// NewNonce is one that nothing had before.
func NewNonce() string { return rand.Text() + before + strconv.Itoa(Protocol) }

// ProtocolOf is the highest protocol of what a master has for a marker and for a record, whatever
// else that is; 1 where there is none.
func ProtocolOf(marker, record string) int {
	return max(protocolIn(marker, 2), protocolIn(record, 1))
}

// protocolIn is that of the nonce which has so many fields before it.
func protocolIn(text string, fields int) int {
	words := strings.SplitN(text, " ", fields+2)
	if len(words) <= fields {
		return 1
	}
	nonce, _, _ := strings.Cut(words[fields], ".") // the number of the era of a record
	_, number, _ := strings.Cut(nonce, before)
	n, _ := strconv.Atoi(number)
	return max(1, n)
}
