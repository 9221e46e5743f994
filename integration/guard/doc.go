// Package guard tests that no lock is granted twice because a master lost its data, and shows that
// locks are granted twice without the guard. The tests need the build tag integration.
package guard
