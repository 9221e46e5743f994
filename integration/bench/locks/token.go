package locks

import (
	"crypto/rand"
	"encoding/base64"
)

// newToken returns a token as redsync makes it: 16 random bytes in base64.
func newToken() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand ends the program instead
	return base64.StdEncoding.EncodeToString(b[:])
}
