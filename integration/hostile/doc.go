// Package hostile runs hostile clients of all kinds at the same time, under the race detector,
// together with honest clients. It checks the locks of the honest clients. `make hostile
// HOSTILE=1h` runs all clients for an hour; an ordinary test runs them for 30 seconds. The proxies
// must not end, race or panic. No lock may be held twice, memory must stay limited, and finally the
// proxies must serve clients as before.
//
// The test prints the p99 of honest clients at a proxy without the race detector: alone, together
// with many harmless clients that make no pauses, and together with the hostile clients. Compare
// the first figure with the last. The harmless clients show the part of the difference that comes
// from busy processors, because servers, proxies and clients share one machine. The hostile and
// harmless clients run in processes with the lowest priority.
//
// REDLOCK_HOSTILE_KINDS selects kinds. `make hostile-kinds` runs each attack alone, only with the
// proxy without the race detector.
package hostile
