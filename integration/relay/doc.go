// Package relay tests the connections to the upstream: all commands other than those on locks get
// the same replies as from the Redis itself. The tests need the build tag integration.
package relay
