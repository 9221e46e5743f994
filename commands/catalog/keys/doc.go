// Package keys finds the keys among the words of a Redis command, and decides which of them are
// lock keys.
package keys
