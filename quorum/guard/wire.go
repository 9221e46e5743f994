package guard

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"redlock-proxy/quorum/cell"
	"redlock-proxy/quorum/guard/clock"
	"redlock-proxy/quorum/guard/marker"
	"redlock-proxy/quorum/guard/script"

	"github.com/redis/go-redis/v9"
)

// Conn is what the guard asks of a master and does there, outside of batches.
type Conn interface {
	// Examine has the master tell of itself.
	Examine(ctx context.Context) (Report, error)
	// Run runs one of the guard's scripts, in database 0, and returns its answer as
	// go-redis does.
	Run(ctx context.Context, s script.Script, args ...any) (any, error)
}

// RedisConn is a Conn over go-redis.
type RedisConn struct {
	// Client speaks to a database of the master.
	Client func(db int) *redis.Client
	// Timeout bounds each exchange.
	Timeout time.Duration
}

// Examine is of Conn.
func (w RedisConn) Examine(ctx context.Context) (Report, error) {
	ctx, cancel := context.WithTimeout(ctx, w.Timeout)
	defer cancel()
	pipe := w.Client(0).Pipeline()
	info, proxies := pipe.Info(ctx), pipe.HGetAll(ctx, script.ProxiesKey)
	fsync, rewrite := pipe.ConfigGet(ctx, "appendfsync"), pipe.ConfigGet(ctx, "no-appendfsync-on-rewrite")
	longest, record := pipe.Get(ctx, script.LongestKey), pipe.Get(ctx, script.RecordKey)
	size := pipe.DBSize(ctx)
	mark, now := pipe.Get(ctx, script.MarkerKey), pipe.Time(ctx)
	sent := time.Now()
	_, _ = pipe.Exec(ctx)
	for _, get := range []*redis.StringCmd{mark, record, longest} {
		if err := get.Err(); err != nil && !errors.Is(err, redis.Nil) {
			return Report{}, err
		}
	}
	v := Report{Marker: mark.Val(), Record: record.Val(), Longest: marker.Milliseconds(longest.Val())}
	v.Sighting = sighted(sent, time.Now(), now)
	v.readInfo(info.Val())
	v.readProxies(proxies.Val())
	own := int64(min(1, len(proxies.Val())) + min(1, len(record.Val())))
	v.Empty = size.Err() == nil && size.Val() == own && !v.hasDatabases(own > 0)
	if set, err := fsync.Result(); err == nil && v.Appendfsync == "" {
		v.Appendfsync = set["appendfsync"]
	}
	v.RewriteUnsynced = rewrite.Val()["no-appendfsync-on-rewrite"] != "no"
	return v, now.Err()
}

// sighted makes a sighting of an answer to TIME.
func sighted(sent, got time.Time, now *redis.TimeCmd) clock.Sighting {
	if now.Err() != nil {
		return clock.Sighting{}
	}
	return clock.Sighting{Sent: sent, Got: got, Told: time.Duration(now.Val().UnixNano())}
}

// Run is of Conn. The script goes by its SHA, and whole where that is not known.
func (w RedisConn) Run(ctx context.Context, s script.Script, args ...any) (any, error) {
	ctx, cancel := context.WithTimeout(ctx, w.Timeout)
	defer cancel()
	cmd := w.Client(0).EvalSha(ctx, s.SHA, nil, args...)
	if err := cmd.Err(); err != nil && strings.HasPrefix(err.Error(), "NOSCRIPT ") {
		cmd = w.Client(0).Eval(ctx, s.Source, nil, args...)
	}
	return cmd.Result()
}

// amend runs a script that answers a number.
func amend(ctx context.Context, w Conn, s script.Script, args ...any) (int64, error) {
	said, err := w.Run(ctx, s, args...)
	if err != nil {
		return 0, err
	}
	n, ok := said.(int64)
	if !ok {
		return 0, fmt.Errorf("unexpected answer %v", said)
	}
	return n, nil
}

// databaseList is what a master knows of its databases: its marker, its record of the longest
// TTL, and those with a marker of their own, beside database 0.
type databaseList struct {
	marker    string
	longest   time.Duration
	databases []int
}

func databasesOf(ctx context.Context, w Conn) (databaseList, error) {
	said, err := w.Run(ctx, script.Databases)
	if err != nil {
		return databaseList{}, err
	}
	told, err := texts(said)
	if err != nil || len(told) < 2 {
		return databaseList{}, fmt.Errorf("unexpected answer %v", said)
	}
	r := databaseList{marker: told[0], longest: marker.Milliseconds(told[1])}
	for _, text := range told[2:] {
		db, err := strconv.Atoi(text)
		if err != nil {
			return databaseList{}, fmt.Errorf("%s: %w", script.DatabasesKey, err)
		}
		r.databases = append(r.databases, db)
	}
	return r, nil
}

// texts are the parts of an answer.
func texts(said any) ([]string, error) {
	parts, ok := said.([]any)
	if !ok {
		return nil, fmt.Errorf("unexpected answer %v", said)
	}
	all := make([]string, len(parts))
	for i, part := range parts {
		all[i] = fmt.Sprint(part)
	}
	return all, nil
}

// page is a part of a database: entries by key, and the cursor of the next part ("0":
// there is none).
type page struct {
	marker   string
	sequence int64
	sighting clock.Sighting
	cursor   string
	entries  []entry
}

// entry is a key, its value, and its remaining time (negative: no end).
type entry struct {
	key, value string
	left       time.Duration
}

// pageSize is how many keys a page has, about.
const pageSize = 500

// readPage reads keys of a database, from a cursor on, and a field of its sequence; of the proxies'
// own keys those that begin with own, unless that is empty.
func readPage(ctx context.Context, w Conn, db int, cursor, field, own string) (page, error) {
	sent := time.Now()
	said, err := w.Run(ctx, script.Page, db, cursor, pageSize, field, own)
	if err != nil {
		return page{}, err
	}
	return decodePage(said, sent, time.Now())
}

// decodePage takes {marker, number, seconds, microseconds, cursor, key, value, PTTL, …}.
func decodePage(said any, sent, got time.Time) (page, error) {
	told, err := texts(said)
	if err != nil {
		return page{}, err
	}
	if len(told) < 5 || len(told)%3 != 2 {
		return page{}, fmt.Errorf("unexpected answer of %d parts", len(told))
	}
	p := page{marker: told[0], cursor: told[4], sighting: clock.Sighting{Sent: sent, Got: got, Told: timeOf(told[2:4])}}
	p.sequence, _ = strconv.ParseInt(told[1], 10, 64)
	for rest := told[5:]; len(rest) > 0; rest = rest[3:] {
		if rest[2] == "-2" {
			continue // it ended between the two looks at it
		}
		p.entries = append(p.entries, entry{rest[0], rest[1], marker.Milliseconds(rest[2])})
	}
	return p, nil
}

// Locks are those that stand on a master, whether or not a majority granted them.
type Locks struct {
	// Count is how many there are.
	Count int
	// Left is the longest remaining time among them; cell.Endless where one has no end.
	Left time.Duration
}

// LocksOn counts the locks in these databases of a master, and the blocking copies, which may
// be of locks. What was removed by a ballot does not count.
func LocksOn(ctx context.Context, w Conn, databases []int) (Locks, error) {
	var found Locks
	for _, db := range databases {
		for cursor, first := "0", true; first || cursor != "0"; first = false {
			p, err := readPage(ctx, w, db, cursor, marker.NoClaim, "")
			if err != nil {
				return Locks{}, err
			}
			for _, e := range p.entries {
				found.add(e)
			}
			cursor = p.cursor
		}
	}
	return found, nil
}

func (l *Locks) add(e entry) {
	if c := cell.Parse(e.value); !c.Value.Present && c.Form != cell.Blocking {
		return
	}
	l.Count++
	switch {
	case e.left < 0, l.Left == cell.Endless:
		l.Left = cell.Endless
	default:
		l.Left = max(l.Left, e.left)
	}
}

// Outlasts reports whether one of the locks may be held for longer than a TTL from now.
func (l Locks) Outlasts(ttl time.Duration) bool {
	return l.Count > 0 && (l.Left == cell.Endless || l.Left > ttl)
}
