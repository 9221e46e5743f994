//go:build integration

package chaos

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"redlock-proxy/internal/redistest"
)

// looker reads the masters directly, and compares their cells with a ledger.
type looker struct {
	cluster *cluster
	ledger  *ledger
	keys    []string
	well    func() wellBeing // returns which masters are disturbed
	// confirm, if set, reports whether a client sees that a key has a token. A value on a majority
	// of the masters need not be a lock.
	confirm func(key, token string) bool

	clients     [masterCount]*redistest.Client
	addrs       [masterCount]string // addresses of the clients' masters
	looks       int
	unconfirmed int
}

// look reads all keys of all masters once, and checks them.
func (l *looker) look() {
	before, live := l.well(), l.ledger.held()
	held := l.read()
	after := l.well()
	l.looks++
	for token, h := range live {
		l.wantHeld(h, token, held, before, after)
	}
	for _, key := range l.keys {
		for token, times := range l.tokensOf(key, held) {
			if times >= majority && l.ledger.isSettled(token) {
				l.checkRevived(key, token)
			}
		}
	}
}

// wantHeld records a lock that is absent on a majority of masters without faults. The other masters
// may have lost it, and do not vote.
func (l *looker) wantHeld(h holding, token string, held [masterCount]map[string]string, before, after wellBeing) {
	denied := 0
	for i, values := range held {
		if values != nil && hadNoFault(i, before, after) && l.denies(values[h.key], token) {
			denied++
		}
	}
	if denied >= majority && l.ledger.isLive(token) {
		l.ledger.lose(h.key, token, fmt.Sprintf("%d masters that are well do not hold it", denied))
	}
}

// denies reports whether a value is no lock, or the lock of another token.
func (l *looker) denies(value, token string) bool {
	other := l.ledger.tokenIn(value)
	return value == "" || other != "" && other != token
}

// checkRevived handles a token that was found on a majority although its lock was refused or has
// been released. The token must be absent at the second check.
func (l *looker) checkRevived(key, token string) {
	times := l.tokensOf(key, l.read())[token]
	switch {
	case times < majority:
	case l.confirm != nil && !l.confirm(key, token):
		l.unconfirmed++
	default:
		l.ledger.revive(key, token, fmt.Sprintf("it is on %d masters, after it was refused or released", times))
	}
}

// tokensOf returns, for each token of the ledger, the number of masters that have it under a key.
func (l *looker) tokensOf(key string, held [masterCount]map[string]string) map[string]int {
	times := map[string]int{}
	for _, values := range held {
		if token := l.ledger.tokenIn(values[key]); token != "" {
			times[token]++
		}
	}
	return times
}

// read returns the value of each key on each master, nil for a master that does not answer.
func (l *looker) read() (held [masterCount]map[string]string) {
	var reads sync.WaitGroup
	for i := range held {
		reads.Go(func() { held[i] = l.readOne(i) })
	}
	reads.Wait()
	return held
}

// lookPatience limits the time to read a master.
const lookPatience = 200 * time.Millisecond

func (l *looker) readOne(i int) map[string]string {
	addr := l.cluster.masters()[i].Addr()
	if l.clients[i] != nil && l.addrs[i] != addr {
		_ = l.clients[i].Close()
		l.clients[i] = nil
	}
	if l.clients[i] == nil {
		client, err := redistest.Dial(addr, lookPatience)
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
	held := map[string]string{}
	for n, key := range l.keys {
		held[key], _ = values[n].(string)
	}
	return held
}

// standing returns, as text, the value and the remaining time of a key on each master.
func (c *cluster) standing(key string) string {
	var all []string
	for _, master := range c.masters() {
		value, err := askWithin(lookPatience, master.Addr(), "GET", key)
		left, _ := askWithin(lookPatience, master.Addr(), "PTTL", key)
		switch {
		case err != nil:
			all = append(all, "?")
		case value == nil:
			all = append(all, "nothing")
		default:
			all = append(all, fmt.Sprintf("%q for %v ms", value, left))
		}
	}
	return strings.Join(all, ", ")
}

// run reads the masters repeatedly until over is closed.
func (l *looker) run(over <-chan struct{}, every time.Duration) {
	for {
		select {
		case <-over:
			l.close()
			return
		case <-time.After(every):
			l.look()
		}
	}
}

func (l *looker) close() {
	for _, client := range l.clients {
		if client != nil {
			_ = client.Close()
		}
	}
}

// holdsByProxy asks a proxy for the value of a key, or the next proxy if it does not answer.
func (c *cluster) holdsByProxy(key, token string) bool {
	for range 2 {
		for _, proxy := range c.proxies {
			if value, err := askWithin(patience, proxy.addr, "GET", key); err == nil {
				return value == any(token)
			}
		}
	}
	return false
}
