//go:build integration

package chaos

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/harness"
	"redlock-proxy/integration/kit"
)

// agreement checks the masters at the end, without faults and load. They must have the same cells
// for all lock keys.
type agreement struct {
	cluster *cluster
	// mayBeOpen reports whether the state of a key may be undetermined, because a master has lost
	// its data since the state was last known.
	mayBeOpen func(key string) bool

	forced []string      // keys that an operator had to force-unlock
	took   time.Duration // until the masters agreed on all other keys
}

// want waits until the masters agree. An operator removes undetermined keys. The proxies must know
// the state of each key.
func (a *agreement) want(t *testing.T) {
	t.Helper()
	a.cluster.awaitVotes(t)
	began := time.Now()
	open, err := a.await(a.mayBeOpen)
	a.took = time.Since(began)
	kit.NoError(t, err)
	for _, key := range open {
		if _, err := ask(a.cluster.proxies[0].addr, "FORCEUNLOCK", key); err != nil {
			t.Errorf("FORCEUNLOCK %s: %v", key, err)
		}
	}
	a.forced = open
	_, err = a.await(func(string) bool { return false })
	kit.NoError(t, err)
	kit.NoError(t, a.known())
}

// await waits until all masters have the same cell for each key. It returns the keys that are
// undetermined and may be.
func (a *agreement) await(mayBeOpen func(key string) bool) (open []string, err error) {
	for end := time.Now().Add(agreed); ; time.Sleep(100 * time.Millisecond) {
		if open, err = a.differing(mayBeOpen); err == nil || time.Now().After(end) {
			return open, err
		}
	}
}

// differing returns an error unless the masters agree, and the keys that may be undetermined.
func (a *agreement) differing(mayBeOpen func(key string) bool) (open []string, err error) {
	keys, err := a.keys()
	if err != nil {
		return nil, err
	}
	held, wrong := make([][]any, masterCount), []error(nil)
	for i, m := range a.cluster.masters() {
		reply, err := ask(m.Addr(), append([]string{"MGET"}, keys...)...)
		if err != nil {
			return nil, err
		}
		held[i] = reply.([]any)
	}
	for k, key := range keys {
		var of []any
		for i := range held {
			of = append(of, held[i][k])
		}
		switch {
		case harness.IsOpen(of) && mayBeOpen(key): // also if all hold the same blocking copy
			open = append(open, key)
		case harness.Agree(of) && !harness.IsOpen(of):
		default:
			wrong = append(wrong, fmt.Errorf("the masters hold under %s %.200q", key, of))
		}
	}
	return open, errors.Join(wrong...)
}

// keys returns the lock keys that have a cell on at least one master.
func (a *agreement) keys() (all []string, err error) {
	for _, m := range a.cluster.masters() {
		reply, err := ask(m.Addr(), "KEYS", "lock:*")
		if err != nil {
			return nil, err
		}
		for _, key := range reply.([]any) {
			all = append(all, key.(string))
		}
	}
	slices.Sort(all)
	return append(slices.Compact(all), "lock:of nobody"), nil
}

// known returns an error unless each proxy knows the state of each key.
func (a *agreement) known() error {
	keys, err := a.keys()
	wrong := []error{err}
	for _, proxy := range a.cluster.proxies {
		for _, key := range keys {
			if _, err := ask(proxy.addr, "GET", key); err != nil {
				wrong = append(wrong, fmt.Errorf("GET %s: %w", key, err))
			}
			if info, err := ask(proxy.addr, "LOCKINFO", key); err != nil || strings.Contains(fmt.Sprint(info), "unclear") {
				wrong = append(wrong, fmt.Errorf("LOCKINFO %s: %v %v", key, info, err))
			}
		}
	}
	return errors.Join(wrong...)
}
