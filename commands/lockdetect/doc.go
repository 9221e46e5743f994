// Package lockdetect notices keys of the upstream that clients use like locks although no glob of
// the lock keys covers them: SET with NX and an expiry takes a lock, a compare-and-delete releases
// one. Most operators do not know all their lock keys. The log and PROXY INFO show the patterns of
// these keys. A command with another purpose may have the same form, so this is only a hint.
//
// Memory is bounded, whatever clients send: at most [maxPrefixes] prefixes of keys with
// [maxPatterns] patterns each, and the bodies and digests of [maxScripts] scripts. Values, and thus
// tokens, are neither kept nor logged.
package lockdetect
