// Package hostile holds a load of hostile clients of all kinds at once, under the race detector, against honest ones whose locks are
// checked: `make hostile HOSTILE=1h`, or 30 seconds of it as a test. The proxies must neither end nor race nor panic, no lock may be held
// twice, memory must stay bounded, and when it is over all must be as before.
package hostile
