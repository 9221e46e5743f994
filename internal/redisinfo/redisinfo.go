// Package redisinfo parses the reply of Redis' INFO.
package redisinfo

import (
	"slices"
	"strconv"
	"strings"
)

// Fields holds the values of fields by name. A field that the server does not report is absent.
type Fields map[string]string

// Parse returns the fields of all lines. It skips lines that are not fields, such as the header of
// a bulk string.
func Parse(text string) Fields {
	fields := Fields{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimRight(line, "\r\n"), ":"); ok {
			fields[name] = value
		}
	}
	return fields
}

// FreeMemory returns the number of bytes that the server can still store before it refuses writes.
// The number is negative if the server has no limit, or evicts keys.
func (f Fields) FreeMemory() int64 {
	limit, _ := strconv.ParseInt(f["maxmemory"], 10, 64)
	used, err := strconv.ParseInt(f["used_memory"], 10, 64)
	if limit <= 0 || err != nil || f["maxmemory_policy"] != "noeviction" {
		return -1
	}
	return max(0, limit-used)
}

// Databases returns the numbers of the databases that have keys, in ascending order.
func (f Fields) Databases() (databases []int) {
	for name := range f {
		number, ok := strings.CutPrefix(name, "db")
		if db, err := strconv.Atoi(number); ok && err == nil && db >= 0 {
			databases = append(databases, db)
		}
	}
	slices.Sort(databases)
	return databases
}
