// Package guard tests that no lock is granted twice because a master lost its data, its clock
// jumped, or proxies have different settings. It shows that locks are granted twice without the
// guard. It also tests fences, waits and catch-ups. The tests need the build tag integration.
package guard
