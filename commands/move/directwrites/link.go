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
	"redlock-proxy/quorum/location"
	"redlock-proxy/quorum/pushconn"
)

const (
	// replyTimeout limits the time that the upstream may take for a reply. After the same time
	// without a report, the proxy sends a PING.
	replyTimeout = 2 * time.Second
	// warningPause is the minimum time between two warnings.
	warningPause = 10 * time.Second
	// checkInterval is the time between two checks of reported keys. Each check covers at most
	// maxKeysPerCheck keys, in databases 0 to checkedDatabases-1, and skips further keys and
	// databases.
	checkInterval    = 100 * time.Millisecond
	maxKeysPerCheck  = 100
	checkedDatabases = 16
)

// upstreamLink holds a connection on which the upstream reports changes. It belongs to one
// goroutine.
type upstreamLink struct {
	watcher *Watcher
	conn    net.Conn
	in      *resp.Reader
	// changedKeys holds the lock keys that the upstream has reported since the last check.
	changedKeys map[string]bool
}

// watchOnce watches the upstream on one connection, until the connection ends or the locks are no
// longer at the masters.
func (s *Watcher) watchOnce(ctx context.Context) error {
	conn, err := s.opts.Upstream.Watch(ctx, 0)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	// The limits are for CLIENT LIST, and for keys that change together.
	limits := resp.Limits{Line: 16 << 10, Bulk: 16 << 20, Elements: 1 << 18, Depth: 4, Total: 64 << 20}
	l := &upstreamLink{watcher: s, conn: conn, in: resp.NewRESP3Reader(conn, limits), changedKeys: map[string]bool{}}
	words := []string{"CLIENT", "TRACKING", "ON", "BCAST"}
	for _, prefix := range s.prefixes {
		words = append(words, "PREFIX", prefix)
	}
	if err := pushconn.Greet(conn, l.in, replyTimeout, resp.Status, words...); err != nil {
		return err
	}
	// The upstream may refuse SETNAME.
	replies, err := l.ask([]string{"CLIENT", "SETNAME", move.WatchName}, []string{"EXISTS", location.RecordKey})
	if err != nil {
		return err
	}
	if refused, ok := replies[1].(resp.Error); ok {
		return refused
	}
	s.state.Store(Tracking)
	for err == nil && s.opts.IsAtMasters() {
		if len(l.changedKeys) == 0 {
			_ = conn.SetDeadline(time.Now().Add(replyTimeout))
			err = l.in.Wait() // after a timeout, check sends a PING
		}
		if err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			err = l.check()
		}
		_ = pacing.Sleep(ctx, checkInterval)
	}
	return err
}

// ask sends commands, and returns their replies. It records changes reported meanwhile.
func (l *upstreamLink) ask(commands ...[]string) (replies []any, err error) {
	var out []byte
	for _, words := range commands {
		out = resp.AppendWords(out, words...)
	}
	_ = l.conn.SetDeadline(time.Now().Add(replyTimeout))
	if _, err := l.conn.Write(out); err != nil {
		return nil, err
	}
	for len(replies) < len(commands) {
		switch reply, kind, err := pushconn.ReadNext(l.in); {
		case err != nil:
			return nil, err
		case kind == resp.Push:
			l.record(reply)
		default:
			replies = append(replies, reply)
		}
	}
	return replies, nil
}

// record records the names of changed keys. A report that all keys were removed has no names.
func (l *upstreamLink) record(push any) {
	parts, _ := push.([]any)
	if len(parts) != 2 || parts[0] != any("invalidate") {
		return
	}
	names, _ := parts[1].([]any)
	for _, elem := range names {
		name, ok := elem.(string)
		if ok && len(l.changedKeys) < maxKeysPerCheck && name != location.RecordKey && l.watcher.lockKeys.Match([]byte(name)) {
			l.changedKeys[name] = true
		}
	}
}

// check reads the pending reports. Keys that exist in a database count as set by a client.
func (l *upstreamLink) check() error {
	if _, err := l.ask([]string{"PING"}); err != nil || len(l.changedKeys) == 0 {
		return err
	}
	var commands [][]string
	for db := range checkedDatabases { // if SELECT fails, this checks the previous database again
		commands = append(commands, []string{"SELECT", strconv.Itoa(db)})
		for name := range l.changedKeys {
			commands = append(commands, []string{"EXISTS", name})
		}
	}
	clear(l.changedKeys)
	replies, err := l.ask(commands...)
	if err != nil {
		return err
	}
	present := map[string]bool{}
	for i, reply := range replies {
		if reply == any(int64(1)) {
			present[commands[i][1]] = true
		}
	}
	return l.report(slices.Sorted(maps.Keys(present)))
}

// report counts lock keys set at the upstream, and warns at most once per warningPause.
func (l *upstreamLink) report(names []string) error {
	if len(names) == 0 || !l.watcher.opts.IsAtMasters() {
		return nil
	}
	total := l.watcher.count.Add(int64(len(names)))
	if last := l.watcher.lastWarning.Load(); last != nil && time.Since(last.At) < warningPause {
		return nil
	}
	replies, err := l.ask([]string{"CLIENT", "LIST"})
	if err != nil {
		return err
	}
	list, _ := replies[0].(string)
	detection := &Detection{At: time.Now(), Clients: suspects(list, l.watcher.opts.OwnAddrs())}
	globs := l.watcher.opts.LockKeys
	detection.Glob = globs[keys.NewFirstMatch(globs...).Index(names[0])]
	l.watcher.lastWarning.Store(detection)
	l.watcher.opts.Logger.Warn(
		"lock keys are used at the upstream directly: clients of proxies do not see these locks; connect all clients to a proxy",
		"lock_keys", detection.Glob, "key", names[0], "seen", total, "clients", strings.Join(detection.Clients, ", "))
	return nil
}
