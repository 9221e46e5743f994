//go:build integration

package chaos

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"redlock-proxy/internal/redistest"
)

// inspector reads the masters directly, and compares their cells with a ledger.
type inspector struct {
	cluster    *cluster
	ledger     *ledger
	keys       []string
	faultState func() faultState // returns the disturbed masters
	// confirm, if set, reports whether a client sees that a key has a token. A value on a majority
	// of the masters need not be a lock.
	confirm func(key, token string) bool
	// readTimeout limits the time to read a master.
	readTimeout time.Duration

	clients          [masterCount]*redistest.Client
	addrs            [masterCount]string // addresses of the clients' masters
	inspections      int
	unconfirmedCount int
}

// inspect reads all keys of all masters once, and checks them.
func (l *inspector) inspect() {
	before, live := l.faultState(), l.ledger.liveHoldings()
	values := l.readAll()
	after := l.faultState()
	l.inspections++
	for token, h := range live {
		if slices.Contains(l.keys, h.key) {
			l.checkHeld(h, token, values, before, after)
		}
	}
	for _, key := range l.keys {
		for token, times := range l.tokensOf(key, values) {
			if times >= majority && l.ledger.isSettled(token) {
				l.checkRevived(key, token)
			}
		}
	}
}

// checkHeld records a loss if a majority of the masters had no fault and does not have the lock. A
// master with a fault does not count, because it may have lost the lock and then does not vote.
func (l *inspector) checkHeld(h holding, token string, cells [masterCount]map[string]string, before, after faultState) {
	contradicting := 0
	for i, values := range cells {
		if values != nil && hadNoFault(i, before, after) && l.contradicts(values[h.key], token) {
			contradicting++
		}
	}
	if contradicting >= majority && l.ledger.isLive(token) {
		l.ledger.recordLoss(h.key, token, fmt.Sprintf("%d masters that are well do not hold it", contradicting))
	}
}

// contradicts reports whether a value is empty, or has another token of the ledger.
func (l *inspector) contradicts(value, token string) bool {
	other := l.ledger.tokenIn(value)
	return value == "" || other != "" && other != token
}

// checkRevived records a revival if a majority still has a refused or released token when the
// masters are read again. If confirm is set, a client must see the token, too.
func (l *inspector) checkRevived(key, token string) {
	times := l.tokensOf(key, l.readAll())[token]
	switch {
	case times < majority:
	case l.confirm != nil && !l.confirm(key, token):
		l.unconfirmedCount++
	default:
		l.ledger.recordRevival(key, token, fmt.Sprintf("it is on %d masters, after it was refused or released", times))
	}
}

// tokensOf returns, for each token of the ledger, the number of masters that have it under a key.
func (l *inspector) tokensOf(key string, cells [masterCount]map[string]string) map[string]int {
	times := map[string]int{}
	for _, values := range cells {
		if token := l.ledger.tokenIn(values[key]); token != "" {
			times[token]++
		}
	}
	return times
}

// readAll returns the value of each key on each master, or nil for a master that does not reply.
func (l *inspector) readAll() (cells [masterCount]map[string]string) {
	var reads sync.WaitGroup
	for i := range cells {
		reads.Go(func() { cells[i] = l.readOne(i) })
	}
	reads.Wait()
	return cells
}

// shortReadTimeout limits the time to read a master that may have a fault.
const shortReadTimeout = 200 * time.Millisecond

func (l *inspector) readOne(i int) map[string]string {
	addr := l.cluster.masters()[i].Addr()
	if l.clients[i] != nil && l.addrs[i] != addr {
		_ = l.clients[i].Close()
		l.clients[i] = nil
	}
	if l.clients[i] == nil {
		client, err := redistest.Dial(addr, l.readTimeout)
		if err != nil {
			return nil
		}
		l.clients[i], l.addrs[i] = client, addr
	}
	reply, err := l.clients[i].Do(append([]string{"MGET"}, l.keys...)...)
	values, ok := reply.([]any)
	if err != nil || !ok {
		_ = l.clients[i].Close()
		l.clients[i] = nil
		return nil
	}
	cells := map[string]string{}
	for n, key := range l.keys {
		cells[key], _ = values[n].(string)
	}
	return cells
}

// describeKey returns, as text, the value and the remaining time of a key on each master.
func (c *cluster) describeKey(key string) string {
	var parts []string
	for _, master := range c.masters() {
		value, err := doWithin(shortReadTimeout, master.Addr(), "GET", key)
		ttl, _ := doWithin(shortReadTimeout, master.Addr(), "PTTL", key)
		switch {
		case err != nil:
			parts = append(parts, "?")
		case value == nil:
			parts = append(parts, "nothing")
		default:
			parts = append(parts, fmt.Sprintf("%q for %v ms", value, ttl))
		}
	}
	return strings.Join(parts, ", ")
}

// run reads the masters repeatedly until stopping is closed.
func (l *inspector) run(stopping <-chan struct{}, interval time.Duration) {
	for {
		select {
		case <-stopping:
			l.close()
			return
		case <-time.After(interval):
			l.inspect()
		}
	}
}

func (l *inspector) close() {
	for _, client := range l.clients {
		if client != nil {
			_ = client.Close()
		}
	}
}

// isHeldAtProxy reports whether a proxy returns token as the value of a key. If a proxy does not
// reply, isHeldAtProxy asks the next proxy.
func (c *cluster) isHeldAtProxy(key, token string) bool {
	for range 2 {
		for _, proxy := range c.proxies {
			if value, err := doWithin(replyTimeout, proxy.addr, "GET", key); err == nil {
				return value == any(token)
			}
		}
	}
	return false
}
