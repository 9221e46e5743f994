package kit

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"redlock-proxy/integration/harness"
	"redlock-proxy/internal/redistest"
)

// masterReplyTimeout limits a command on a master that is up.
const masterReplyTimeout = time.Second

// Everywhere waits until each of these masters meets a condition, at most two seconds each.
func Everywhere(t *testing.T, masters []*redistest.Server, condition func(*redistest.Server) error) {
	t.Helper()
	for _, master := range masters {
		Settles(t, func() error { return condition(master) })
	}
}

// Holds returns an error unless a master holds the key with this token for about ten more seconds.
func Holds(master *redistest.Server, key, token string) error {
	value, ttl, err := Peek(master, key)
	if err != nil {
		return err
	}
	if ms, ok := ttl.(int64); value != any(token) || !ok || ms <= 9000 || ms > 10000 {
		return fmt.Errorf("master %s: expected %s = %s with a PTTL in (9000..10000], got %v with %v",
			master.Addr(), key, token, value, ttl)
	}
	return nil
}

// Lacks returns an error if a master holds a key.
func Lacks(master *redistest.Server, key string) error {
	value, _, err := Peek(master, key)
	if err == nil && value != nil {
		err = fmt.Errorf("master %s: expected no key %s, got %v", master.Addr(), key, value)
	}
	return err
}

// Peek returns the token of a key on a master (nil if it is not held), and its PTTL in ms.
func Peek(master *redistest.Server, key string) (value, ttl any, err error) {
	conn, err := redistest.Dial(master.Addr(), masterReplyTimeout)
	if err != nil {
		return nil, nil, err
	}
	defer conn.Close()
	value, valueErr := conn.Do("GET", key)
	ttl, ttlErr := conn.Do("PTTL", key)
	return harness.Held(value), ttl, errors.Join(valueErr, ttlErr)
}

// Stands returns an error unless a key in one database of a master is held with a token. If token
// is nil, the key must not be held.
func Stands(master *redistest.Server, db, key string, token any) error {
	reply, err := doIn(masterReplyTimeout, master, db, "GET", key)
	if got := harness.Held(reply); err == nil && got != token {
		err = fmt.Errorf("master %s, database %s: %s is %v, want %v", master.Addr(), db, key, got, token)
	}
	return err
}

// OnMajority returns an error unless more than half of these masters hold a key with a token.
func OnMajority(masters []*redistest.Server, key, token string) error {
	var others []error
	for _, master := range masters {
		if err := Stands(master, "0", key, token); err != nil {
			others = append(others, err)
		}
	}
	if 2*len(others) < len(masters) {
		return nil
	}
	return errors.Join(others...)
}

// Agree returns an error unless all masters have the same cell for each key, except for promised
// ballots.
func Agree(masters []*redistest.Server, keys ...string) error {
	held := make([][]any, len(masters))
	for i, master := range masters {
		reply, err := AskIn(master, "0", append([]string{"MGET"}, keys...)...)
		if err != nil {
			return err
		}
		held[i], _ = reply.([]any)
	}
	var wrong []error
	for k, key := range keys {
		var of []any
		for _, one := range held {
			of = append(of, one[k])
		}
		if !harness.Agree(of) {
			wrong = append(wrong, fmt.Errorf("%s is not the same on all masters: %q", key, of))
		}
	}
	return errors.Join(wrong...)
}

// Tell sends one command to a master, and returns an error reply as an error.
func Tell(master *redistest.Server, command ...string) error { return TellIn(master, "0", command...) }

// TellIn sends one command to a database of a master, like Tell.
func TellIn(master *redistest.Server, db string, command ...string) error {
	_, err := AskIn(master, db, command...)
	return err
}

// AskIn sends one command to a database of a master and returns its reply. It returns an error
// reply as an error.
func AskIn(master *redistest.Server, db string, command ...string) (any, error) {
	return doIn(Patience, master, db, command...)
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
