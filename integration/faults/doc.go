// Package faults has faults of the masters of a fleet: single ones (All), and random ones while
// clients work (Disturber).
package faults
