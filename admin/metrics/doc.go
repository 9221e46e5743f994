// Package metrics exports the metrics of a proxy to Prometheus. At each scrape it reads from
// [Sources] the counts that INFO also shows. It counts lock operations itself: a [CountingLocker]
// and a [CountingRegister] wrap the implementations and count each call.
//
// No label has a value that a client chose: no key, no token, no address of a client. The label
// master is the master's address as configured, without credentials.
//
// # Classes of locks
//
// The operator may divide the locks into classes by their keys ([Classes]). Then four metrics have
// the label class: how long clients waited for locks and held them, renewals, and losses. Without
// classes these metrics have no such label, rather than class="other" only. A query that relates
// two metrics, such as redlock_lock_renewals_total / redlock_kept_locks, needs the same labels on
// both sides, so a label would break queries of operators who use no classes. Queries that
// aggregate (sum, sum by) work with and without the label, as the queries of the dashboard do. The
// alerts use none of the four metrics.
//
// The memory depends on the number of classes only: there is no state by key. An event counts in
// the class that its key has at that time. A LOCK without BLOCK looks up no class. A LOCK with
// BLOCK looks up its class once, and so does each release, renewal and loss.
package metrics
