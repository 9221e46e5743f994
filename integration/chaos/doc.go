// Package chaos lets clients lock through three proxies under random faults. Masters are killed,
// and restart with their data, with older data, with foreign data, or without data. They are also
// stopped, cut off, slowed, flushed and replaced, and their clocks jump. Proxies are killed and
// stopped. Some clients lock with equal values and disconnect within large replies. Some hold keys
// for a long time, and replace them in many ways. An operator force-unlocks keys.
//
// By the clients' own clock, two clients must never hold the same exclusive lock at the same time.
// No lock may be lost before its lease expires, and no released lock may reappear. At the end,
// without faults and load, all masters must have the same cells.
//
// At each moment, at most a minority of the masters is disturbed. A master that lost its data
// counts as disturbed until it votes again.
//
// The same load by redsync, directly on the same masters under the same faults, shows that the test
// can find violations.
package chaos
