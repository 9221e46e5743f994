// Package faults is what can happen to the masters of a fleet from outside, by itself (All) and at
// random while clients work (Disturber).
package faults
