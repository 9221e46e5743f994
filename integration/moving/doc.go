// Package moving tests that two proxies move the locks from the upstream to the masters and back:
// under load and faults, and in small schedules that a user would try.
package moving
