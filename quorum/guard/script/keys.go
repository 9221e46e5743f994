package script

// OwnPrefix begins the names of all keys that proxies keep on masters. No lock has such a name.
const OwnPrefix = "redlock-proxy:"

// The keys of the guard on each master. The marker, the sequence and the canary are in database 0
// and in every other database in which a client ever requested a lock. The other keys are in
// database 0. During a catch-up the quarantine record is in the other databases, too.
const (
	MarkerKey      = OwnPrefix + "marker"
	SequenceKey    = OwnPrefix + "sequence"
	CanaryKey      = OwnPrefix + "canary"
	RecordKey      = OwnPrefix + "quarantine"
	DatabasesKey   = OwnPrefix + "databases"
	MaxTTLKey      = OwnPrefix + "longest"
	reservationKey = OwnPrefix + "catch-up"
	ProxiesKey     = OwnPrefix + "proxies"
	// RulesKey holds the rules that all proxies on the master must share.
	RulesKey = OwnPrefix + "rules"
	// PromiseKey holds the highest ballot that the master promised for a change of the masters. A
	// promise belongs to the marker under which the master gave it, and to the seal that follows. A
	// quarantine or an admission removes the promise.
	PromiseKey = OwnPrefix + "succession"
	// PauseReportsKey holds the proxies' reports that they have paused commands on lock keys.
	PauseReportsKey = OwnPrefix + "held"
	// seqPrefix precedes the field of another master's sequence. The key holds the highest
	// published number.
	seqPrefix = OwnPrefix + "age:"
)

// AdmittedField is the field of the sequence in database 0 with the time of the admission, in ms of
// the master's clock.
const AdmittedField = "admitted"

// maxFence is the highest value of a fence counter. A higher number is not a counter.
const maxFence = "9007199254740991"

// FirstSeq is the first number of a sequence.
const FirstSeq = 1 << 40

const firstSeqText = "1099511627776"
