// Package masters tests changes of the masters while proxies run: one master is added, removed or
// replaced at a time, under load and faults.
package masters
