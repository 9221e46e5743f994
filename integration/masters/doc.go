// Package masters has the tests of changes of the masters while proxies run: one added, removed, or
// replaced at a time, under load and faults.
package masters
