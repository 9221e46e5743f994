// Package holdings records the times during which clients rely on a lock, by the clock of the test
// process. A History belongs to one lock. Overlaps finds the violations of an exclusive lock, and
// Conflicts those of a lock with several holders. In a Contest, many clients compete for the lock.
package holdings
