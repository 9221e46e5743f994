// Package guard tests that masters which forget cannot have a lock granted twice, and shows without
// the guard that they would. The tests need the build tag integration.
package guard
