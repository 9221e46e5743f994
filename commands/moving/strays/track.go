package strays

import (
	"context"
	"errors"
	"maps"
	"net"
	"os"
	"slices"
	"strconv"
	"time"

	"redlock-proxy/commands/moving"
	"redlock-proxy/internal/resp"
	"redlock-proxy/quorum/feed"
)

const (
	// heartbeat is how long the upstream may be silent before it is asked for a sign of life.
	heartbeat = 2 * time.Second
	// roundPause is the least time between two looks at keys that were reported, and maxRound at how many of them each looks: the others are
	// left out.
	roundPause = 100 * time.Millisecond
	maxRound   = 100
)

// limits bound what the upstream says at once: CLIENT LIST, and the names of keys that changed together.
func limits() resp.Limits {
	return resp.Limits{Line: 16 << 10, Bulk: 16 << 20, Elements: 1 << 18, Depth: 4, Total: 64 << 20}
}

// link is a connection to the upstream. It is for one goroutine.
type link struct {
	*Strays
	conn net.Conn
	in   *resp.Reader
	// changed are the lock keys of which changes were reported, and not looked at yet.
	changed map[string]struct{}
	// gone are those that were found to be gone.
	gone map[string]struct{}
	// looked is when keys were looked at last.
	looked time.Time
}

func (s *Strays) connect(ctx context.Context) (*link, func(), error) {
	conn, err := s.opts.Upstream.Watch(ctx, 0)
	if err != nil {
		return nil, nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	l := &link{Strays: s, conn: conn, in: resp.NewReader3(conn, limits()), changed: map[string]struct{}{}, gone: map[string]struct{}{}}
	return l, func() { stop(); _ = conn.Close() }, nil
}

// once watches the upstream on one connection, until that ends.
func (s *Strays) once(ctx context.Context) error {
	l, end, err := s.connect(ctx)
	if err != nil {
		return err
	}
	defer func() { end() }()
	words := []string{"CLIENT", "TRACKING", "ON", "BCAST"}
	for _, prefix := range s.prefixes {
		words = append(words, "PREFIX", prefix)
	}
	err = feed.Greet(l.conn, l.in, patience, resp.Status, words...)
	if feed.IsRefusal(err) && ctx.Err() == nil {
		end()
		if l, end, err = s.connect(ctx); err != nil {
			end = func() {}
			return err
		}
		return l.lookThrough(ctx)
	}
	if err != nil {
		return err
	}
	if _, err := l.ask([]string{"CLIENT", "SETNAME", moving.WatchName}); err != nil { // where it is refused, it goes without
		return err
	}
	s.set(Tracking)
	for {
		if err := l.hear(); err != nil {
			return err
		}
	}
}

// hear waits for a report, or looks at what was reported.
func (l *link) hear() error {
	silent := time.Now().Add(heartbeat)
	if len(l.changed) > 0 {
		silent = l.looked.Add(roundPause)
		if !time.Now().Before(silent) {
			return l.judge()
		}
	}
	_ = l.conn.SetReadDeadline(silent)
	err := l.in.Wait()
	switch {
	case err == nil:
		_ = l.conn.SetReadDeadline(time.Now().Add(patience))
		_, _, err = l.next()
		return err
	case !errors.Is(err, os.ErrDeadlineExceeded):
		return err
	case len(l.changed) > 0:
		return nil
	}
	_, err = l.ask([]string{"PING"})
	return err
}

// next reads a reply, or takes a report.
func (l *link) next() (reply any, isReport bool, err error) {
	reply, kind, err := feed.Next(l.in)
	isReport = kind == resp.Push
	if err == nil && isReport {
		l.take(reply)
	}
	return reply, isReport, err
}

// take takes the names of keys that have changed. Where all are gone at once there are none.
func (l *link) take(report any) {
	parts, _ := report.([]any)
	if len(parts) != 2 || parts[0] != any("invalidate") {
		return
	}
	names, _ := parts[1].([]any)
	for _, one := range names {
		if name, is := one.(string); is && len(l.changed) < maxRound && l.isLock(name) {
			l.changed[name] = struct{}{}
		}
	}
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
		reply, isReport, err := l.next()
		switch {
		case err != nil:
			return nil, err
		case !isReport:
			replies = append(replies, reply)
		}
	}
	return replies, nil
}

// judge finds out which of the keys that were reported somebody put there.
func (l *link) judge() error {
	names := slices.Sorted(maps.Keys(l.changed))
	clear(l.changed)
	l.looked = time.Now()
	exists, err := l.exist(names)
	if err != nil {
		return err
	}
	var strays []string
	for i, name := range names {
		_, before := l.gone[name]
		if exists[i] || before {
			strays = append(strays, name)
			continue
		}
		if len(l.gone) >= maxGone {
			clear(l.gone)
		}
		l.gone[name] = struct{}{}
	}
	l.found(strays, l.who)
	return nil
}

// exist tells which keys there are, in any database. Where that is refused, none.
func (l *link) exist(names []string) ([]bool, error) {
	exists := make([]bool, len(names))
	databases, _, err := l.databases()
	if err != nil {
		return nil, err
	}
	for _, db := range databases {
		commands := [][]string{{"SELECT", strconv.Itoa(db)}}
		for _, name := range names {
			commands = append(commands, []string{"EXISTS", name})
		}
		replies, err := l.ask(commands...)
		if err != nil {
			return nil, err
		}
		if _, refused := replies[0].(resp.Error); refused {
			continue
		}
		for i, reply := range replies[1:] {
			exists[i] = exists[i] || reply == any(int64(1))
		}
	}
	return exists, nil
}
