// Package relay tests the connections to the upstream: all commands except lock commands get the
// same replies as from the upstream itself. The tests need the build tag integration.
package relay
