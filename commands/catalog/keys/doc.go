// Package keys finds where the keys of a Redis command stand among its words, and which of them
// are lock keys.
package keys
