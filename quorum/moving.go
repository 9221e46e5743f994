package quorum

import (
	"fmt"

	"redlock-proxy/quorum/place"
)

// Placed is where the locks on lock keys are, as the masters say.
type Placed struct {
	place.Place
	// Era is the number of the era of the masters in which they are there.
	Era int
}

// Held is what a proxy said that holds back commands on lock keys: all that it had sent to the upstream is answered.
type Held struct {
	// Proxy is its ID.
	Proxy string
	// Connections are the proxy's ends of its connections to the upstream, as host:port.
	Connections []string
}

// ElsewhereError says that nothing was done about a lock key, because the locks are not, or no longer, where that was to be done.
type ElsewhereError struct {
	// Now is where they are.
	Now Placed
}

// Error is a sentence.
func (e *ElsewhereError) Error() string {
	return fmt.Sprintf("the locks are elsewhere (%v)", e.Now.Place)
}
