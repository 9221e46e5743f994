// Package holdings records the times during which clients rely on a lock, by the clock of the test
// process. A History belongs to one lock, and no two of its holdings may overlap. In a Contest,
// many clients compete for the lock.
package holdings
