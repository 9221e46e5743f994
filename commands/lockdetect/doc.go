// Package lockdetect detects keys of the upstream that clients use like locks, although no glob of
// the lock keys matches them. A SET with NX and an expiry takes a lock. A compare-and-delete
// releases a lock. Most operators do not know all their lock keys. The log and PROXY INFO show the
// patterns of these keys. A command with another purpose may have the same form, so the patterns
// are only hints.
//
// Memory is bounded for any commands: at most [maxPrefixes] prefixes of keys with [maxPatterns]
// patterns each, and the bodies and digests of [maxScripts] scripts. The package neither keeps nor
// logs values, which include the tokens.
package lockdetect
