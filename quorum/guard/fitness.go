package guard

// UnfitError is why a master is not asked at all: a lock there cannot be relied on.
type UnfitError struct {
	// Why is a sentence about the master, as in "it is a replica".
	Why string
}

// Error is the sentence.
func (e *UnfitError) Error() string { return e.Why }

// IsReplica reports whether it is unfit because it is a replica.
func (e *UnfitError) IsReplica() bool { return e.Why == whyReplica }

// What makes a master unfit. Twin is followed by the name of the other.
const (
	whyReplica = "it is a replica: locks written there are lost at its next sync"
	Twin       = "it is the same server as "
	whyProxy   = "it is a redlock-proxy: a master is a Redis of its own"
	whyNewer   = "proxies of a later version use it: upgrade this one"
)

// whyPolicy is what makes a master with this maxmemory-policy unfit.
func whyPolicy(policy string) string {
	return "maxmemory-policy " + policy + " may evict a lock: set noeviction"
}

// Unfit is why the master may not vote whatever it holds, or nothing.
func (v Report) Unfit() string {
	switch {
	case v.Proxy:
		return whyProxy
	case v.isNewer():
		return whyNewer
	case v.Role != "" && v.Role != "master":
		return whyReplica
	case v.Policy != "" && v.Policy != "noeviction":
		return whyPolicy(v.Policy)
	default:
		return ""
	}
}
