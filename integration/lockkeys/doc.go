// Package lockkeys tests lock keys, which clients use by Redis' own commands: as the same commands
// on a Redis by itself answer, in histories that one Redis could have given, and while clients move
// from such a Redis to the proxy. The tests need the build tag integration.
package lockkeys
