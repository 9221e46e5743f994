// Package moving has the tests of locks that move from the upstream to the masters and back, by two
// proxies: under load and faults, and in the small schedules that a user would try.
package moving
