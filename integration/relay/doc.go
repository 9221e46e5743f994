// Package relay tests the way to the upstream: whatever is no lock is answered as by the Redis
// itself. The tests need the build tag integration.
package relay
