package script

// OwnPrefix is before the names of all keys of the proxies' own. No lock has such a name.
const OwnPrefix = "redlock-proxy:"

// The keys of the guard on each master. The marker, the sequence and the canary are in
// database 0 and in every other one in which a lock was ever asked for; the rest is in
// database 0, but for the quarantine record while a catch-up fills the other databases.
const (
	MarkerKey    = OwnPrefix + "marker"
	SequenceKey  = OwnPrefix + "sequence"
	CanaryKey    = OwnPrefix + "canary"
	RecordKey    = OwnPrefix + "quarantine"
	DatabasesKey = OwnPrefix + "databases"
	LongestKey   = OwnPrefix + "longest"
	claimKey     = OwnPrefix + "catch-up"
	ProxiesKey   = OwnPrefix + "proxies"
	// RulesKey has what all proxies on the master must have alike.
	RulesKey = OwnPrefix + "rules"
	// PromiseKey has the highest ballot that was promised for a change of the masters.
	PromiseKey = OwnPrefix + "succession"
	// HeldKey has what proxies say that hold back commands on lock keys.
	HeldKey = OwnPrefix + "held"
	// agePrefix is before the field of another master's sequence, with the highest number
	// that was seen there.
	agePrefix = OwnPrefix + "age:"
)

// AdmittedField is the field of the sequence in database 0 with when the master was admitted, in ms
// of its clock.
const AdmittedField = "admitted"

// lenOwnPrefix is the length of OwnPrefix, for Lua.
const lenOwnPrefix = "14"

// maxFenceText is the highest that a fence counter may be; more is none.
const maxFenceText = "9007199254740991"

// FirstAge is the number with which a sequence begins.
const FirstAge = 1 << 40

// firstAgeText is FirstAge, for Lua.
const firstAgeText = "1099511627776"
