// Package hostile holds a load of hostile clients of all kinds at once, under the race detector,
// against honest ones whose locks are checked: `make hostile HOSTILE=1h`, or 30 seconds of it as a
// test. The proxies must neither end nor race nor panic, no lock may be held twice, memory must
// stay bounded, and when it is over all must be as before.
//
// It prints the p99 of honest clients at the proxy without the race detector: alone, beside
// harmless clients that are as many and make no pause, and beside the hostile ones. The first and
// the last are what is to be compared; the harmless ones tell what part of it is that of a machine
// whose processors are all busy, for servers, proxies and clients share it. Those that are not
// honest are a process of the least priority. REDLOCK_HOSTILE_KINDS chooses kinds, and `make
// hostile-kinds` has each attack by itself, with a proxy without the race detector alone.
package hostile
