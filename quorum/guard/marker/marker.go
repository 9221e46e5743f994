package marker

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"redlock-proxy/quorum/guard/reconfig"
)

// The proofs that let a master vote.
const (
	ProofFresh    = "fresh"    // all masters are empty, and no proxy knows of locks
	ProofIntact   = "remark"   // the master still has all its data
	ProofCaughtUp = "caughtup" // the master has caught up with the other masters
	ProofLease    = "lease"    // every lease that the master lost has expired
	ProofJoined   = "joined"   // a master that voted in the former era has caught up with the other masters of that era
)

// ProofText describes, in plain words, why a master with this proof votes.
func ProofText(proof string) string {
	switch proof {
	case ProofFresh:
		return "all masters are new"
	case ProofIntact:
		return "it has all its data"
	case ProofCaughtUp, ProofJoined:
		return "it has caught up with the other masters"
	case ProofLease:
		return "all locks that it may have lost have expired"
	}
	return proof // a proof of another version
}

// Stored holds the value of a key in a master's database 0, as text and parsed. Scripts compare the
// text before they replace the value.
type Stored[T any] struct {
	Text  string
	Value T
	// Valid is false if the text could not be parsed; then Value is empty.
	Valid bool
}

// ReadMarker parses the value of a marker's key.
func ReadMarker(text string) (s Stored[Marker]) {
	s.Text = text
	if text, ok := strings.CutSuffix(text, "@0"); ok {
		s.Value, s.Valid = ParseMarker(text)
	}
	return s
}

// ReadRecord parses the value of the key of a quarantine record.
func ReadRecord(text string) Stored[Record] {
	r, ok := ParseRecord(text)
	return Stored[Record]{text, r, ok}
}

// Marker proves that a master still has the data that it had when its votes began to count. A proxy
// writes the marker when it admits the master, and the marker belongs to the data. A flush removes
// the marker, and a synchronisation from another server replaces it. After a restart the server's
// run_id differs from the marker's.
type Marker struct {
	// RunID and ReplID are the server's run_id and master_replid; "-" if the server does not report
	// them.
	RunID, ReplID string
	// Nonce is unique for each marker.
	Nonce string
	// Durable is set if every write was on disk before its reply, at every check since the
	// admission.
	Durable bool
	// Evicted is the server's evicted_keys when the marker was written.
	Evicted int64
	// Proof is the proof of the admission, or ProofIntact if a new marker replaced the marker of a
	// voting master.
	Proof string
	// Address is the master's address in the configuration of the proxy that wrote the marker.
	Address string
	// Era is the era in which the master votes. Seal is set once the era has ended, and names the
	// successor. A sealed master does not vote.
	Era  reconfig.Era
	Seal reconfig.Seal
}

// laterFormat is added to the digit of Durable in markers that have an era or a seal. Proxies that
// do not know eras reject such a marker.
const laterFormat = 2

// String returns the marker without the number of its database.
func (m Marker) String() string {
	durable := 0
	if m.Durable {
		durable = 1
	}
	if m.Era.Number > 0 || !m.Seal.IsNone() {
		return fmt.Sprintf("%s %s %s %d %d %s %s %s %s",
			m.RunID, m.ReplID, m.Nonce, durable+laterFormat, m.Evicted, m.Proof, m.Era, m.Seal, m.Address)
	}
	return fmt.Sprintf("%s %s %s %d %d %s %s", m.RunID, m.ReplID, m.Nonce, durable, m.Evicted, m.Proof, m.Address)
}

// ParseMarker parses the result of Marker.String. ok is false for any other text.
func ParseMarker(text string) (m Marker, ok bool) {
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
		fields := strings.SplitN(parts[6], " ", 3)
		if len(fields) != 3 {
			return Marker{}, false
		}
		var eraOK, sealOK bool
		m.Era, eraOK = reconfig.ParseEra(fields[0])
		m.Seal, sealOK = reconfig.ParseSeal(fields[1])
		if m.Address = fields[2]; !eraOK || !sealOK {
			return Marker{}, false
		}
	}
	if err != nil || m.String() != text {
		return Marker{}, false
	}
	return m, true
}

// AppendDatabase returns a marker, or a nonce, as it is stored in a database. The result differs
// for each database, so that proxies notice when databases are swapped.
func AppendDatabase(text string, db int) string { return text + "@" + strconv.Itoa(db) }

// Record puts a master into quarantine, and replaces the marker. Only the first proxy that sees the
// need writes it, so that all proxies agree on it.
type Record struct {
	// RunID is the server's run_id; "-" if the server does not report it.
	RunID string
	// Nonce is unique for each record, and ends with an era: see NewRecordNonce.
	Nonce string
	// WrittenAt is the time at which the record was written, in milliseconds since 1970 by the
	// master's clock.
	WrittenAt int64
	// Claim is the nonce of the marker whose data the master claims to have kept over a restart;
	// "-" if it makes no claim. ClaimAddress is the address in that marker.
	Claim, ClaimAddress string
	Reason              string // a guard.Reason
	// Bound is the longest TTL of the locks that the master may have lost, according to a proxy or
	// an operator. It is "-" in the text if Bounded is false, because no proxy knew it.
	Bound   time.Duration
	Bounded bool
}

// NoClaim is the Claim of a record without a claim.
const NoClaim = "-"

// noBound replaces the bound in the text of a record without a bound.
const noBound = "-"

// String returns the record as it is stored on the master.
func (r Record) String() string {
	bound := noBound
	if r.Bounded {
		bound = FormatMillis(r.Bound)
	}
	text := fmt.Sprintf("%s %s %d %s %s %s", r.RunID, r.Nonce, r.WrittenAt, r.Claim, r.Reason, bound)
	if r.ClaimAddress != "" {
		text += " " + r.ClaimAddress
	}
	return text
}

// ParseRecord parses the result of Record.String. ok is false for any other text.
func ParseRecord(text string) (r Record, ok bool) {
	parts := strings.SplitN(text, " ", 7)
	if len(parts) < 6 {
		return Record{}, false
	}
	since, err := strconv.ParseInt(parts[2], 10, 64)
	r = Record{RunID: parts[0], Nonce: parts[1], WrittenAt: since, Claim: parts[3], Reason: parts[4]}
	if len(parts) == 7 {
		r.ClaimAddress = parts[6]
	}
	if parts[5] != noBound {
		r.Bound, r.Bounded = ParseMillis(parts[5]), true
	}
	if err != nil || r.String() != text {
		return Record{}, false
	}
	return r, true
}

// eraSeparator separates the parts of a record's nonce: the unique part, the era, and once more the
// era's number, which is all that proxies of version 0.3.0 write and read.
const eraSeparator = "."

// NewRecordNonce returns a unique nonce for a record that is written in the era.
func NewRecordNonce(era reconfig.Era) string {
	return NewNonce() + eraSeparator + era.String() + eraSeparator + strconv.Itoa(era.Number)
}

// eraText returns the nonce's part after the unique one; empty if there is none.
func (r Record) eraText() string {
	_, text, _ := strings.Cut(r.Nonce, eraSeparator)
	return text
}

// Era returns the era in which the record was written. stated is false for a record of version
// 0.3.0.
func (r Record) Era() (era reconfig.Era, stated bool) {
	text := r.eraText()
	return reconfig.ParseEra(text[:max(0, strings.LastIndex(text, eraSeparator))])
}

// IsOfEra reports whether the record was written in the era. Of a record of version 0.3.0, only the
// era's number is known; without a number it is of the first era.
func (r Record) IsOfEra(era reconfig.Era) bool {
	if own, stated := r.Era(); stated {
		return own == era
	}
	return r.eraText() == strconv.Itoa(era.Number) || r.eraText() == "" && era.Number == 0
}

// WithEraOf returns the record with the era of another record.
func (r Record) WithEraOf(other Record) Record {
	if text := other.eraText(); text != "" {
		r.Nonce += eraSeparator + text
	}
	return r
}

// WithBound returns the record with a bound, in whole milliseconds.
func (r Record) WithBound(bound time.Duration) Record {
	r.Bound, r.Bounded = (bound + time.Millisecond - 1).Truncate(time.Millisecond), true
	return r
}

// overrideReason is the reason of a record whose bound an operator stated, with precedence over the
// proxies' knowledge.
const overrideReason = "vouched"

// WithOverride returns the record with an operator's bound, which is final.
func (r Record) WithOverride(bound time.Duration) Record {
	r = r.WithBound(bound)
	r.Reason = overrideReason
	return r
}

// IsFinal reports whether the bound is final.
func (r Record) IsFinal() bool { return r.Bounded && r.Reason == overrideReason }

// WithoutClaim returns the record without its claim.
func (r Record) WithoutClaim() Record {
	r.Claim, r.ClaimAddress = NoClaim, ""
	return r
}

// ParseMillis parses the result of FormatMillis. It returns zero if the text is not a number.
func ParseMillis(text string) time.Duration {
	ms, _ := strconv.ParseInt(text, 10, 64)
	return time.Duration(ms) * time.Millisecond
}

// FormatMillis formats a duration in whole milliseconds, as it is stored on a master.
func FormatMillis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
