// Package waiting tests LOCK … BLOCK, and BLPOP and similar commands on lock keys, with several
// proxies. Waiters must not cost the masters any commands, and must be notified of every event that
// frees the lock or adds an element. The leases are much longer than a test, and no waiter polls.
// So only a notification can wake a waiter. The tests need the build tag integration.
package waiting
