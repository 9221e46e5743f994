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

// finalCheck checks the masters at the end, without faults and load. The masters must have the same
// cells for all lock keys.
type finalCheck struct {
	cluster *cluster
	// mayBeUndetermined reports whether the state of a key may be undetermined, because a master
	// has lost its data since the state was last known.
	mayBeUndetermined func(key string) bool

	forcedKeys []string      // keys that an operator had to force-unlock
	elapsed    time.Duration // time until the masters agreed on all other keys
}

// wantAgreement waits until the masters agree. An operator removes undetermined keys. The proxies
// must know the state of each key.
func (a *finalCheck) wantAgreement(t *testing.T) {
	t.Helper()
	a.cluster.awaitVotes(t)
	startedAt := time.Now()
	keys, err := a.awaitAgreement(a.mayBeUndetermined)
	a.elapsed = time.Since(startedAt)
	kit.NoError(t, err)
	for _, key := range keys {
		if _, err := do(a.cluster.proxies[0].addr, "FORCEUNLOCK", key); err != nil {
			t.Errorf("FORCEUNLOCK %s: %v", key, err)
		}
	}
	a.forcedKeys = keys
	_, err = a.awaitAgreement(func(string) bool { return false })
	kit.NoError(t, err)
	kit.NoError(t, a.checkStates())
}

// awaitAgreement waits until all masters have the same cell for each key. It returns the
// undetermined keys that mayBeUndetermined allows.
func (a *finalCheck) awaitAgreement(mayBeUndetermined func(key string) bool) (keys []string, err error) {
	for end := time.Now().Add(agreementTimeout); ; time.Sleep(100 * time.Millisecond) {
		if keys, err = a.undeterminedKeys(mayBeUndetermined); err == nil || time.Now().After(end) {
			return keys, err
		}
	}
}

// undeterminedKeys returns the undetermined keys that mayBeUndetermined allows. It returns an error
// if the masters disagree on any other key.
func (a *finalCheck) undeterminedKeys(mayBeUndetermined func(key string) bool) (list []string, err error) {
	keys, err := a.keys()
	if err != nil {
		return nil, err
	}
	cells, errs := make([][]any, masterCount), []error(nil)
	for i, m := range a.cluster.masters() {
		reply, err := do(m.Addr(), append([]string{"MGET"}, keys...)...)
		if err != nil {
			return nil, err
		}
		cells[i] = reply.([]any)
	}
	for k, key := range keys {
		var copies []any
		for i := range cells {
			copies = append(copies, cells[i][k])
		}
		switch {
		case harness.IsUndetermined(copies) && mayBeUndetermined(key):
			// A key is undetermined even if all masters have the same blocking copy of it.
			list = append(list, key)
		case harness.SameCells(copies) && !harness.IsUndetermined(copies):
		default:
			errs = append(errs, fmt.Errorf("the masters hold under %s %.200q", key, copies))
		}
	}
	return list, errors.Join(errs...)
}

// keys returns the lock keys that have a cell on at least one master, and one key that has none.
func (a *finalCheck) keys() (keys []string, err error) {
	for _, m := range a.cluster.masters() {
		reply, err := do(m.Addr(), "KEYS", "lock:*")
		if err != nil {
			return nil, err
		}
		for _, key := range reply.([]any) {
			keys = append(keys, key.(string))
		}
	}
	slices.Sort(keys)
	return append(slices.Compact(keys), "lock:of nobody"), nil
}

// checkStates returns an error unless each proxy knows the state of each key.
func (a *finalCheck) checkStates() error {
	keys, err := a.keys()
	errs := []error{err}
	for _, proxy := range a.cluster.proxies {
		for _, key := range keys {
			if _, err := do(proxy.addr, "GET", key); err != nil && !strings.HasPrefix(err.Error(), "WRONGTYPE ") { // it has holders
				errs = append(errs, fmt.Errorf("GET %s: %w", key, err))
			}
			if info, err := do(proxy.addr, "LOCKINFO", key); err != nil || strings.Contains(fmt.Sprint(info), "unclear") {
				errs = append(errs, fmt.Errorf("LOCKINFO %s: %v %v", key, info, err))
			}
		}
	}
	return errors.Join(errs...)
}
