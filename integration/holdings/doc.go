// Package holdings records what clients believe to hold, each by its own clock: a History of one
// lock, in which no two holdings may overlap, and a Contest of many clients for it.
package holdings
