// Package lockdetect notices keys that are used like locks on the upstream, because no
// glob of the lock keys covers them: SET with NX and a time takes one, a compare and
// delete releases one. Most operators do not know all their lock keys; the log and PROXY
// INFO show them, by pattern. A command that is used for something else may look the
// same, so this is a hint and decides nothing.
//
// What is kept is bounded, whatever clients send: at most [maxHeads] beginnings of keys
// with [maxPatterns] patterns each, and the bodies and digests of [maxScripts] scripts.
// No value, so no token, is kept or logged.
package lockdetect
