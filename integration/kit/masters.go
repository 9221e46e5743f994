package kit

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"redlock-proxy/integration/harness"
	"redlock-proxy/internal/redistest"
	"redlock-proxy/quorum/guard/marker"
)

// masterReplyTimeout limits a command on a master that is up.
const masterReplyTimeout = 10 * time.Second

// EachMaster waits until each of these masters meets a condition, as AwaitShortly does.
func EachMaster(t *testing.T, masters []*redistest.Server, condition func(*redistest.Server) error) {
	t.Helper()
	for _, master := range masters {
		AwaitShortly(t, func() error { return condition(master) })
	}
}

// WantQuarantine waits until each of these masters has a quarantine record that states how long to
// wait. From then on proxies that start wait no longer than those that run.
func WantQuarantine(t *testing.T, masters []*redistest.Server) {
	t.Helper()
	for _, master := range masters {
		Eventually(t, func() error {
			text, err := QueryDatabase(master, "0", "GET", "redlock-proxy:quarantine")
			if record := marker.ReadRecord(fmt.Sprint(text)).Value; err == nil && !record.Bounded {
				err = fmt.Errorf("%s is not in quarantine for a known time: %v", master.Addr(), text)
			}
			return err
		})
	}
}

// CheckHeld returns an error unless a master holds the key with this token for about ten more
// seconds.
func CheckHeld(master *redistest.Server, key, token string) error {
	value, ttl, err := ReadKey(master, key)
	if err != nil {
		return err
	}
	if ms, ok := ttl.(int64); value != any(token) || !ok || ms <= 2000 || ms > 10000 {
		return fmt.Errorf("master %s: expected %s = %s with a PTTL in (2000..10000], got %v with %v",
			master.Addr(), key, token, value, ttl)
	}
	return nil
}

// CheckAbsent returns an error if a master holds a key.
func CheckAbsent(master *redistest.Server, key string) error {
	value, _, err := ReadKey(master, key)
	if err == nil && value != nil {
		err = fmt.Errorf("master %s: expected no key %s, got %v", master.Addr(), key, value)
	}
	return err
}

// ReadKey returns the token of a key on a master (nil if it is not held), and its PTTL in ms.
func ReadKey(master *redistest.Server, key string) (value, ttl any, err error) {
	conn, err := redistest.Dial(master.Addr(), masterReplyTimeout)
	if err != nil {
		return nil, nil, err
	}
	defer conn.Close()
	value, valueErr := conn.Do("GET", key)
	ttl, ttlErr := conn.Do("PTTL", key)
	return harness.HeldToken(value), ttl, errors.Join(valueErr, ttlErr)
}

// CheckToken returns an error unless a key in one database of a master is held with a token. If
// token is nil, the key must not be held.
func CheckToken(master *redistest.Server, db, key string, token any) error {
	reply, err := doIn(masterReplyTimeout, master, db, "GET", key)
	if got := harness.HeldToken(reply); err == nil && got != token {
		err = fmt.Errorf("master %s, database %s: %s is %v, want %v", master.Addr(), db, key, got, token)
	}
	return err
}

// CheckMajority returns an error unless more than half of these masters hold a key with a token.
func CheckMajority(masters []*redistest.Server, key, token string) error {
	var errs []error
	for _, master := range masters {
		if err := CheckToken(master, "0", key, token); err != nil {
			errs = append(errs, err)
		}
	}
	if 2*len(errs) < len(masters) {
		return nil
	}
	return errors.Join(errs...)
}

// CheckSameCells returns an error unless all masters have the same cell for each key, except for
// promised ballots.
func CheckSameCells(masters []*redistest.Server, keys ...string) error {
	held := make([][]any, len(masters))
	for i, master := range masters {
		reply, err := QueryDatabase(master, "0", append([]string{"MGET"}, keys...)...)
		if err != nil {
			return err
		}
		held[i], _ = reply.([]any)
	}
	var errs []error
	for k, key := range keys {
		var of []any
		for _, one := range held {
			of = append(of, one[k])
		}
		if !harness.SameCells(of) {
			errs = append(errs, fmt.Errorf("%s is not the same on all masters: %q", key, of))
		}
	}
	return errors.Join(errs...)
}

// SendToMaster sends one command to a master, and returns an error reply as an error.
func SendToMaster(master *redistest.Server, command ...string) error {
	return SendToDatabase(master, "0", command...)
}

// SendToDatabase sends one command to a database of a master, like SendToMaster.
func SendToDatabase(master *redistest.Server, db string, command ...string) error {
	_, err := QueryDatabase(master, db, command...)
	return err
}

// QueryDatabase sends one command to a database of a master and returns its reply. It returns an
// error reply as an error.
func QueryDatabase(master *redistest.Server, db string, command ...string) (any, error) {
	return doIn(WaitLimit, master, db, command...)
}

func doIn(timeout time.Duration, master *redistest.Server, db string, command ...string) (any, error) {
	client, err := redistest.Dial(master.Addr(), timeout)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	if _, err := client.Do("SELECT", db); err != nil {
		return nil, err
	}
	reply, err := client.Do(command...)
	if failure, bad := reply.(redistest.RespError); bad {
		return nil, failure
	}
	return reply, err
}
