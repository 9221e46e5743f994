// Package waiting tests LOCK … BLOCK, and BLPOP and its kin on lock keys, over several proxies:
// that those who wait cost the masters nothing, and are woken by whatever frees the lock, or puts
// something there. The leases are far longer than a test, and a test first sees to it that nobody
// polls: only being told can wake a waiter then. The tests need the build tag integration.
package waiting
