// Package copying decides what a master that forgot is to hold, by what the masters hold that it
// is copied from. It does no I/O; GUARD.md proves that it is right.
package copying
