// Package holdings records when clients rely on a lock, each by its own clock. A History belongs to
// one lock, and no two of its holdings may overlap. In a Contest, many clients compete for the
// lock.
package holdings
