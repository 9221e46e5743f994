// Package keys finds the keys in the words of a Redis command, and decides which of them are lock
// keys.
package keys
