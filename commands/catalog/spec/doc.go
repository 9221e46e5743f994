// Package spec describes the commands of Redis: their number of words, which words are keys,
// whether they write or block, and how they affect the connection. Other packages should use these
// descriptions rather than lists of their own. A test compares the descriptions with the reply of a
// real Redis to COMMAND.
package spec
