package quorum

import (
	"fmt"
	"strconv"
	"strings"
)

// The keys of the proxies themselves on each master. The marker also stands in every
// other database in which a lock was ever asked for; the rest is in database 0, but
// for the quarantine record while a catch-up fills the other databases.
const (
	ownPrefix    = "redlock-proxy:"
	markerKey    = ownPrefix + "marker"
	recordKey    = ownPrefix + "quarantine"
	databasesKey = ownPrefix + "databases"
	longestKey   = ownPrefix + "longest"
	claimKey     = ownPrefix + "catch-up"
	// turnPrefix stands before a lock key, in its database, with the turn to change it.
	turnPrefix = ownPrefix + "turn:"
	// offerPrefix stands before a lock key, in its database, with an offer of it.
	offerPrefix = ownPrefix + "offer:"
)

// marker proves that a master still has the data that it had when its votes began
// to count. It is written once, when the master is admitted, and goes with the data:
// a flush takes it away, a synchronisation from another server brings another one,
// and a restart gives the server another run_id than the marker's.
type marker struct {
	// runID and replID are the server's run_id and master_replid ("-": it does not
	// tell).
	runID, replID string
	// nonce makes the marker unlike every other one.
	nonce string
	// durable is set where every write was on disk before its answer, at the time.
	durable bool
	// evicted is the server's evicted_keys at the time.
	evicted int64
	// address is the master's name in the configuration of the proxy that wrote it.
	address string
}

// String is the marker as it stands in database 0.
func (m marker) String() string {
	durable := 0
	if m.durable {
		durable = 1
	}
	return fmt.Sprintf("%s %s %s %d %d %s", m.runID, m.replID, m.nonce, durable, m.evicted, m.address)
}

// parseMarker reads what String wrote. ok is false for anything else.
func parseMarker(text string) (m marker, ok bool) {
	parts := strings.SplitN(text, " ", 6)
	if len(parts) != 6 {
		return marker{}, false
	}
	evicted, err := strconv.ParseInt(parts[4], 10, 64)
	m = marker{
		runID: parts[0], replID: parts[1], nonce: parts[2], durable: parts[3] == "1",
		evicted: evicted, address: parts[5],
	}
	return m, err == nil && m.String() == text
}

// inDatabase is the marker as it stands in a database: each has its own, so that
// SWAPDB does not go unnoticed.
func inDatabase(marker string, db int) string {
	if db == 0 || marker == "" {
		return marker
	}
	return marker + "@" + strconv.Itoa(db)
}

// record says that a master is in quarantine. It stands where the marker would,
// written once by the first proxy that sees the need, so that all proxies agree on
// what they see and since when.
type record struct {
	// runID is the server's run_id ("-": it does not tell).
	runID string
	nonce string
	// since is the latest moment at which the master may have forgotten something, in
	// milliseconds since 1970 by its own clock.
	since  int64
	reason reason
}

// String is the record as it stands on the master.
func (r record) String() string {
	return fmt.Sprintf("%s %s %d %s", r.runID, r.nonce, r.since, r.reason)
}

// parseRecord reads what String wrote. ok is false for anything else.
func parseRecord(text string) (r record, ok bool) {
	parts := strings.Split(text, " ")
	if len(parts) != 4 {
		return record{}, false
	}
	since, err := strconv.ParseInt(parts[2], 10, 64)
	r = record{runID: parts[0], nonce: parts[1], since: since, reason: reason(parts[3])}
	return r, err == nil && r.String() == text
}
