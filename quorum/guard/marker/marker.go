package marker

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"redlock-proxy/quorum/guard/reconfig"
)

// The proofs with which a master is admitted.
const (
	ProofFresh    = "fresh"    // all masters are empty, and no proxy knows of locks
	ProofRemark   = "remark"   // it has all its data still
	ProofCaughtUp = "caughtup" // it has what the others hold
	ProofLease    = "lease"    // whatever it forgot is over
	ProofJoined   = "joined"   // it voted in the set of masters before, and has what the others of that hold
)

// Stored is the value of a key in a master's database 0: the text, with which a script compares
// before it replaces it, and what that was read as.
type Stored[T any] struct {
	Text  string
	Value T
	// Valid is false where the text is nothing of that kind; then Value is empty.
	Valid bool
}

// ReadMarker reads the value of a marker's key.
func ReadMarker(text string) (s Stored[Marker]) {
	s.Text = text
	if text, own := strings.CutSuffix(text, "@0"); own {
		s.Value, s.Valid = Parse(text)
	}
	return s
}

// ReadRecord reads the value of the key of a quarantine record.
func ReadRecord(text string) Stored[Record] {
	r, is := ParseRecord(text)
	return Stored[Record]{text, r, is}
}

// Marker proves that a master still has the data that it had when its votes began
// to count. It is written once, when the master is admitted, and goes with the data:
// a flush takes it away, a synchronisation from another server brings another one,
// and a restart gives the server another run_id than the marker's.
type Marker struct {
	// RunID and ReplID are the server's run_id and master_replid ("-": it does not
	// report it).
	RunID, ReplID string
	// Nonce makes the marker unlike every other one.
	Nonce string
	// Durable is set where every write was on disk before its answer, whenever a proxy
	// looked since.
	Durable bool
	// Evicted is the server's evicted_keys at the time.
	Evicted int64
	// Proof is that of the admission, or ProofRemark where another marker of a master that votes
	// was replaced.
	Proof string
	// Address is the master's name in the configuration of the proxy that wrote it.
	Address string
	// Era is the set of masters that it votes in. Seal is set once this set is over, and has what
	// follows: then it does not vote.
	Era  reconfig.Era
	Seal reconfig.Seal
}

// later is added to the digit of Durable in markers that have an era or a seal: proxies that know
// of neither take such a marker for none.
const later = 2

// String is the marker without the number of the database that it is in.
func (m Marker) String() string {
	durable := 0
	if m.Durable {
		durable = 1
	}
	if m.Era.Number > 0 || !m.Seal.IsNone() {
		return fmt.Sprintf("%s %s %s %d %d %s %s %s %s", m.RunID, m.ReplID, m.Nonce, durable+later, m.Evicted, m.Proof, m.Era, m.Seal, m.Address)
	}
	return fmt.Sprintf("%s %s %s %d %d %s %s", m.RunID, m.ReplID, m.Nonce, durable, m.Evicted, m.Proof, m.Address)
}

// Parse reads what String wrote. ok is false for anything else.
func Parse(text string) (m Marker, ok bool) {
	parts := strings.SplitN(text, " ", 7)
	if len(parts) != 7 {
		return Marker{}, false
	}
	evicted, err := strconv.ParseInt(parts[4], 10, 64)
	m = Marker{
		RunID: parts[0], ReplID: parts[1], Nonce: parts[2], Durable: parts[3] == "1" || parts[3] == "3",
		Evicted: evicted, Proof: parts[5], Address: parts[6],
	}
	if parts[3] >= "2" {
		more := strings.SplitN(parts[6], " ", 3)
		if len(more) != 3 {
			return Marker{}, false
		}
		var known, right bool
		m.Era, known = reconfig.ParseEra(more[0])
		m.Seal, right = reconfig.ParseSeal(more[1])
		if m.Address = more[2]; !known || !right {
			return Marker{}, false
		}
	}
	if err != nil || m.String() != text {
		return Marker{}, false
	}
	return m, true
}

// InDatabase is a marker, or a nonce, as it is kept in a database: each has its own, so
// that databases which were swapped do not go unnoticed.
func InDatabase(text string, db int) string { return text + "@" + strconv.Itoa(db) }

// Record has a master in quarantine. It is in the place of the marker,
// written once by the first proxy that sees the need, so that all proxies agree on
// what they see.
type Record struct {
	// RunID is the server's run_id ("-": it does not report it).
	RunID string
	Nonce string
	// Since is when it was written, in milliseconds since 1970 by the master's clock.
	Since int64
	// Claim is the nonce of the marker from an earlier life whose data the master claims
	// to have still; "-": it does not. ClaimOf is that marker's address.
	Claim, ClaimOf string
	Reason         string // a guard.Reason
	// Bound is the longest TTL that anything which the master may have forgotten was granted
	// with, as a proxy knew it or an operator stated it; "-" in the record where bounded is
	// not set: none did.
	Bound   time.Duration
	Bounded bool
}

// NoClaim is the claim of a record that has none.
const NoClaim = "-"

// unbounded is the bound of a record that has none.
const unbounded = "-"

// String is the record as it is kept on the master.
func (r Record) String() string {
	bound := unbounded
	if r.Bounded {
		bound = Millis(r.Bound)
	}
	text := fmt.Sprintf("%s %s %d %s %s %s", r.RunID, r.Nonce, r.Since, r.Claim, r.Reason, bound)
	if r.ClaimOf != "" {
		text += " " + r.ClaimOf
	}
	return text
}

// ParseRecord reads what String wrote. ok is false for anything else.
func ParseRecord(text string) (r Record, ok bool) {
	parts := strings.SplitN(text, " ", 7)
	if len(parts) < 6 {
		return Record{}, false
	}
	since, err := strconv.ParseInt(parts[2], 10, 64)
	r = Record{RunID: parts[0], Nonce: parts[1], Since: since, Claim: parts[3], Reason: parts[4]}
	if len(parts) == 7 {
		r.ClaimOf = parts[6]
	}
	if parts[5] != unbounded {
		r.Bound, r.Bounded = Milliseconds(parts[5]), true
	}
	if err != nil || r.String() != text {
		return Record{}, false
	}
	return r, true
}

// Within is the record with a bound, in whole milliseconds.
func (r Record) Within(bound time.Duration) Record {
	r.Bound, r.Bounded = (bound + time.Millisecond - 1).Truncate(time.Millisecond), true
	return r
}

// vouched is the reason of a record of which an operator said for how long a lock may still be
// held, whatever proxies know.
const vouched = "vouched"

// VouchedFor is the record with such a bound, which is final.
func (r Record) VouchedFor(bound time.Duration) Record {
	r = r.Within(bound)
	r.Reason = vouched
	return r
}

// IsFinal reports whether its bound is.
func (r Record) IsFinal() bool { return r.Bounded && r.Reason == vouched }

// WithoutClaim is the record after a proxy knew better than its claim.
func (r Record) WithoutClaim() Record {
	r.Claim, r.ClaimOf = NoClaim, ""
	return r
}

// Milliseconds reads what millis wrote; zero where it is none.
func Milliseconds(text string) time.Duration {
	ms, _ := strconv.ParseInt(text, 10, 64)
	return time.Duration(ms) * time.Millisecond
}

// Millis is a duration in whole milliseconds, as it is kept on a master.
func Millis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
