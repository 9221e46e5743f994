// Package reconfig decides changes of the masters, without I/O: which set of masters follows which.
// An [Era] is a set of masters. A [Seal] in the markers of its masters ends the era and names the
// successor, by ballots among the masters ([Choose]).
package reconfig
