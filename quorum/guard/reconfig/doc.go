// Package reconfig decides changes of the masters, without I/O: which set of masters follows which.
// An [Era] describes a set of masters. A [Seal] in the markers of its masters ends the era and
// names the successor. The masters agree on the seal by ballots ([Choose]).
package reconfig
