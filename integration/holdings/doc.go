// Package holdings records when clients rely on a lock, each by its own clock: a History of one
// lock, in which no two holdings may overlap, and a Contest of many clients for the lock.
package holdings
