package guard

// UnfitError reports why a master gets no operations: a lock on it would not be safe.
type UnfitError struct {
	// Cause is a sentence about the master, such as "it is a replica".
	Cause string
}

// Error returns the sentence.
func (e *UnfitError) Error() string { return e.Cause }

// IsReplica reports whether the master is unfit because it is a replica.
func (e *UnfitError) IsReplica() bool { return e.Cause == unfitReplica }

// The reasons why a master is unfit. The name of the other master follows DuplicateServer.
const (
	unfitReplica      = "it is a replica: locks written there are lost at its next sync"
	DuplicateServer   = "it is the same server as "
	unfitProxy        = "it is a redlock-proxy: masters must be Redis servers"
	unfitNewerProxies = "proxies of a later version use it: upgrade this proxy"
)

// UnfitCause returns the reason why the master may not vote, regardless of its data; empty if there
// is none.
func (v Report) UnfitCause() string {
	switch {
	case v.IsProxy:
		return unfitProxy
	case v.isNewer():
		return unfitNewerProxies
	case v.Role != "" && v.Role != "master":
		return unfitReplica
	case v.Policy != "" && v.Policy != "noeviction":
		return "maxmemory-policy " + v.Policy + " may evict a lock: set noeviction"
	default:
		return ""
	}
}
