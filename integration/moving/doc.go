// Package moving tests that two proxies move the locks from the upstream to the masters and back.
// It tests moves under load and faults, and small schedules that a user would try.
package moving
