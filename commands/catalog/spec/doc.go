// Package spec describes the commands of Redis: their number of words, which words are keys,
// whether they write or block, and how they affect the connection. No other package has such
// knowledge. A test compares it with COMMAND of a Redis.
package spec
