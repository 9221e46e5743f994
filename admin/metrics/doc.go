// Package metrics exports the metrics of a proxy to Prometheus. At each scrape it reads from
// [Sources] the counts that INFO also shows. It counts lock operations itself: a [CountingLocker]
// and a [CountingRegister] wrap the implementations and count each call.
//
// No label has a value that a client chose: no key, no token, no address of a client. The label
// master is the master's address as configured, without credentials.
package metrics
