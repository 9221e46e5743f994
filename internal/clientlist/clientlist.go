// Package clientlist parses the reply of Redis' CLIENT LIST.
package clientlist

import (
	"net/netip"
	"strings"
)

// Client holds the fields of one line of the reply by name. A field that the server does not report
// is empty.
type Client map[string]string

// Parse returns the clients of all lines that have an ID.
func Parse(list string) (clients []Client) {
	for line := range strings.Lines(list) {
		c := Client{}
		for word := range strings.FieldsSeq(line) {
			name, value, _ := strings.Cut(word, "=")
			c[name] = value
		}
		if c["id"] != "" {
			clients = append(clients, c)
		}
	}
	return clients
}

// Addr returns the client's address, in the form of [Address].
func (c Client) Addr() string { return Address(c["addr"]) }

// String describes the client for an operator.
func (c Client) String() string {
	text := c.Addr()
	for _, field := range []string{"name", "lib-name"} {
		if c[field] != "" {
			text += " " + field + "=" + c[field]
		}
	}
	return text
}

// Address returns an ip:port in canonical form, and any other text unchanged.
func Address(text string) string {
	at, err := netip.ParseAddrPort(text)
	if err != nil {
		return text
	}
	return netip.AddrPortFrom(at.Addr().Unmap(), at.Port()).String()
}
