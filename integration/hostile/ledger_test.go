//go:build integration

package hostile

import (
	"fmt"
	"sync"
	"time"
)

// ledger is what the honest clients hold, as far as they have been told.
type ledger struct {
	mu      sync.Mutex
	holders map[string]holder
	grants  int
	errors  map[string]int
	wrong   []string
}

// holder is who holds a key, and until when the lease lasts at least by its own clock.
type holder struct {
	token string
	until time.Time
}

func newLedger() *ledger { return &ledger{holders: map[string]holder{}, errors: map[string]int{}} }

// granted notes a grant, which is wrong where another holds the key whose lease is not over.
func (l *ledger) granted(key, token string, until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.grants++
	if other, held := l.holders[key]; held && time.Now().Before(other.until) {
		l.wrong = append(l.wrong, fmt.Sprintf("%s was granted to %s while %s held it", key, token, other.token))
	}
	l.holders[key] = holder{token, until}
}

// leaves notes that a holder is about to release.
func (l *ledger) leaves(key, token string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.holders[key].token == token {
		delete(l.holders, key)
	}
}

// failed counts an error.
func (l *ledger) failed(kind string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.errors[kind]++
}
