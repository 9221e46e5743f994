// Package clientlist reads what Redis' CLIENT LIST tells.
package clientlist

import (
	"net/netip"
	"strings"
)

// Client is a line of it: the fields by their names. One that a server does not tell is empty.
type Client map[string]string

// Parse reads all lines.
func Parse(list string) (all []Client) {
	for line := range strings.Lines(list) {
		c := Client{}
		for word := range strings.FieldsSeq(line) {
			name, value, _ := strings.Cut(word, "=")
			c[name] = value
		}
		if c["id"] != "" {
			all = append(all, c)
		}
	}
	return all
}

// Addr is the client's end of its connection, as [Address] writes it.
func (c Client) Addr() string { return Address(c["addr"]) }

// Address is a host:port in one form, however a server writes it. Anything else stays as it is.
func Address(text string) string {
	at, err := netip.ParseAddrPort(text)
	if err != nil {
		return text
	}
	return netip.AddrPortFrom(at.Addr().Unmap(), at.Port()).String()
}
