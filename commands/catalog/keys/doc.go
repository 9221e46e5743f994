// Package keys finds the keys in the words of a Redis command, and decides which are lock keys.
package keys
