package directwrites

import (
	"context"
	"errors"
	"maps"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"redlock-proxy/commands/catalog/keys"
	"redlock-proxy/commands/move"
	"redlock-proxy/internal/pacing"
	"redlock-proxy/internal/resp"
	"redlock-proxy/quorum/feed"
	"redlock-proxy/quorum/place"
)

const (
	// patience is how long the upstream may take for an answer, and be silent before it is asked
	// for a sign of life.
	patience = 2 * time.Second
	// complaintPause is the least time between two complaints in the log.
	complaintPause = 10 * time.Second
	// roundPause is the wait between two looks at keys that were reported. Each is at up to
	// maxRound of them, in so many databases: the others are left out.
	roundPause = 100 * time.Millisecond
	maxRound   = 100
	databases  = 16
)

// link is a connection on which the upstream reports changes. It is for one goroutine.
type link struct {
	of   *Watcher
	conn net.Conn
	in   *resp.Reader
	// changed are the lock keys of which changes were reported, and not looked at yet.
	changed map[string]bool
}

// once watches the upstream on one connection, until that ends, or the locks leave the masters.
func (s *Watcher) once(ctx context.Context) error {
	conn, err := s.opts.Upstream.Watch(ctx, 0)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	limits := resp.Limits{Line: 16 << 10, Bulk: 16 << 20, Elements: 1 << 18, Depth: 4, Total: 64 << 20} // of CLIENT LIST, and of what changes together
	l := &link{of: s, conn: conn, in: resp.NewReader3(conn, limits), changed: map[string]bool{}}
	words := []string{"CLIENT", "TRACKING", "ON", "BCAST"}
	for _, prefix := range s.prefixes {
		words = append(words, "PREFIX", prefix)
	}
	if err := feed.Greet(conn, l.in, patience, resp.Status, words...); err != nil {
		return err
	}
	replies, err := l.ask([]string{"CLIENT", "SETNAME", move.WatchName}, []string{"EXISTS", place.RecordKey}) // it goes without a name
	if err != nil {
		return err
	}
	if refused, is := replies[1].(resp.Error); is {
		return refused
	}
	s.watch.Store(Tracking)
	for err == nil && s.opts.AtMasters() {
		if len(l.changed) == 0 {
			_ = conn.SetDeadline(time.Now().Add(patience))
			err = l.in.Wait() // and then it is asked for a sign of life
		}
		if err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			err = l.look()
		}
		_ = pacing.Sleep(ctx, roundPause)
	}
	return err
}

// ask sends commands at once, and returns the reply to each. It takes what is reported meanwhile.
func (l *link) ask(commands ...[]string) (replies []any, err error) {
	var out []byte
	for _, words := range commands {
		out = resp.AppendWords(out, words...)
	}
	_ = l.conn.SetDeadline(time.Now().Add(patience))
	if _, err := l.conn.Write(out); err != nil {
		return nil, err
	}
	for len(replies) < len(commands) {
		switch reply, kind, err := feed.Next(l.in); {
		case err != nil:
			return nil, err
		case kind == resp.Push:
			l.take(reply)
		default:
			replies = append(replies, reply)
		}
	}
	return replies, nil
}

// take takes the names of keys that have changed. Where all are gone at once there are none.
func (l *link) take(report any) {
	parts, _ := report.([]any)
	if len(parts) != 2 || parts[0] != any("invalidate") {
		return
	}
	names, _ := parts[1].([]any)
	for _, one := range names {
		if name, is := one.(string); is && len(l.changed) < maxRound && name != place.RecordKey && l.of.lockKeys.Match([]byte(name)) {
			l.changed[name] = true
		}
	}
}

// look takes what was reported, and finds out which of these keys are there, in any database:
// somebody put them there.
func (l *link) look() error {
	if _, err := l.ask([]string{"PING"}); err != nil || len(l.changed) == 0 {
		return err
	}
	var commands [][]string
	for db := range databases { // where one is refused, the one before is looked at again
		commands = append(commands, []string{"SELECT", strconv.Itoa(db)})
		for name := range l.changed {
			commands = append(commands, []string{"EXISTS", name})
		}
	}
	clear(l.changed)
	replies, err := l.ask(commands...)
	if err != nil {
		return err
	}
	there := map[string]bool{}
	for i, reply := range replies {
		if reply == any(int64(1)) {
			there[commands[i][1]] = true
		}
	}
	return l.found(slices.Sorted(maps.Keys(there)))
}

// found counts lock keys that somebody put there, and complains, but not too often.
func (l *link) found(names []string) error {
	if len(names) == 0 || !l.of.opts.AtMasters() {
		return nil
	}
	total := l.of.count.Add(int64(len(names)))
	if last := l.of.last.Load(); last != nil && time.Since(last.At) < complaintPause {
		return nil
	}
	replies, err := l.ask([]string{"CLIENT", "LIST"})
	if err != nil {
		return err
	}
	list, _ := replies[0].(string)
	one := &Sighting{At: time.Now(), Clients: suspects(list, l.of.opts.Own())}
	one.Glob = l.of.opts.LockKeys[slices.IndexFunc(l.of.opts.LockKeys, func(glob string) bool { return keys.NewPatterns(glob).Match([]byte(names[0])) })]
	l.of.last.Store(one)
	l.of.opts.Logger.Warn("lock keys are used at the upstream directly: the locks are at the masters, and nobody there knows of these",
		"lock_keys", one.Glob, "key", names[0], "seen", total, "clients", strings.Join(one.Clients, ", "))
	return nil
}
