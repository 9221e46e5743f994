// Package reconfig has what is decided about a change of the masters, without I/O: which set of
// masters follows which. A set of masters is an [Era]; that it is over, and what follows, is a
// [Seal] in the markers of its masters, agreed on by ballots among them ([Choose]).
package reconfig
