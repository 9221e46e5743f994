// Package faults causes faults of the masters of a fleet: single faults (All), and random faults
// while clients work (Disturber).
package faults
