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

// Room is how many more bytes it may hold before it refuses to; negative: it has no limit, or
// evicts keys.
func (f Fields) Room() int64 {
	limit, _ := strconv.ParseInt(f["maxmemory"], 10, 64)
	used, err := strconv.ParseInt(f["used_memory"], 10, 64)
	if limit <= 0 || err != nil || f["maxmemory_policy"] != "noeviction" {
		return -1
	}
	return max(0, limit-used)
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
