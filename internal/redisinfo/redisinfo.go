// Package redisinfo reads what Redis' INFO says.
package redisinfo

import (
	"slices"
	"strconv"
	"strings"
)

// Fields are the values by their names. One that a server does not report is absent.
type Fields map[string]string

// Parse reads all lines. It passes over what is no field, as the header of a bulk string.
func Parse(text string) Fields {
	fields := Fields{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimRight(line, "\r\n"), ":"); ok {
			fields[name] = value
		}
	}
	return fields
}

// Databases are those that hold keys, in their order.
func (f Fields) Databases() (found []int) {
	for name := range f {
		number, ok := strings.CutPrefix(name, "db")
		if db, err := strconv.Atoi(number); ok && err == nil && db >= 0 {
			found = append(found, db)
		}
	}
	slices.Sort(found)
	return found
}
