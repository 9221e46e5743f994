package guard

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"redlock-proxy/internal/luascript"
	"redlock-proxy/quorum/availability"
	"redlock-proxy/quorum/cell"
	"redlock-proxy/quorum/guard/marker"
	"redlock-proxy/quorum/guard/script"
)

// Redis implements Conn for a Redis server.
type Redis struct {
	// Do sends all commands at once to database 0, and returns their replies as in RESP2. A reply
	// is nil for no value, and an error if the command failed or did not run.
	Do func(ctx context.Context, commands ...[]any) []any
	// TrialKey is the key of trial writes, which no client uses. The default is a key of the proxies.
	TrialKey string
}

// The indexes of the replies to the commands of Examine.
const (
	infoReply = iota
	proxiesReply
	fsyncReply
	rewriteReply
	promiseReply
	rulesReply
	longestTTLReply
	recordReply
	sizeReply
	admittedReply
	markerReply
	timeReply
	trialReply
)

// Examine implements Conn.
func (r Redis) Examine(ctx context.Context) (Report, error) {
	sent := time.Now()
	all := replies(r.Do(ctx,
		[]any{"INFO"}, []any{"HGETALL", script.ProxiesKey},
		[]any{"CONFIG", "GET", "appendfsync"}, []any{"CONFIG", "GET", "no-appendfsync-on-rewrite"},
		[]any{"GET", script.PromiseKey}, []any{"GET", script.RulesKey},
		[]any{"GET", script.MaxTTLKey}, []any{"GET", script.RecordKey},
		[]any{"DBSIZE"}, []any{"HGET", script.SequenceKey, script.AdmittedField},
		[]any{"GET", script.MarkerKey}, []any{"TIME"},
		availability.TrialCommand(cmp.Or(r.TrialKey, script.OwnPrefix+"trial")), // last, because the server may delay it
	))
	got := time.Now()
	for _, i := range []int{markerReply, recordReply, longestTTLReply, promiseReply, rulesReply} {
		if err := all.err(i); err != nil {
			return Report{}, err
		}
	}
	v := ReadInfo(all.text(infoReply))
	v.Marker, v.Record = marker.ReadMarker(all.text(markerReply)), marker.ReadRecord(all.text(recordReply))
	v.Rules, v.Promise = all.text(rulesReply), all.text(promiseReply)
	v.LongestTTL, v.AdmittedAt = marker.ParseMillis(all.text(longestTTLReply)), marker.ParseMillis(all.text(admittedReply))
	v.Refusal = availability.Refusal(all.err(trialReply), true)
	if parts, err := texts(all[timeReply]); err == nil && len(parts) == 2 {
		v.ClockReading = ClockReading{SentAt: sent, ReceivedAt: got, ServerTime: parseTime(parts)}
	}
	proxies := all.pairs(proxiesReply)
	v.readProxies(proxies)
	ownKeys := int64(min(1, len(proxies)) + min(1, len(all.text(recordReply))))
	usesDatabase := func(db int) bool { return db != 0 || ownKeys == 0 }
	v.Empty = all[sizeReply] == any(ownKeys) && !slices.ContainsFunc(v.Databases, usesDatabase)
	if v.Appendfsync == "" {
		v.Appendfsync = all.pairs(fsyncReply)["appendfsync"]
	}
	v.RewriteUnsynced = all.pairs(rewriteReply)["no-appendfsync-on-rewrite"] != "no"
	return v, all.err(timeReply)
}

// replies holds the replies to some commands.
type replies []any

// err returns the error of a reply, or nil.
func (a replies) err(i int) error {
	err, _ := a[i].(error)
	return err
}

// text returns a reply as text; empty if it is not text.
func (a replies) text(i int) string {
	text, _ := a[i].(string)
	return text
}

// pairs returns a reply that consists of fields and values.
func (a replies) pairs(i int) map[string]string {
	parts, _ := texts(a[i])
	values := make(map[string]string, len(parts)/2)
	for ; len(parts) > 1; parts = parts[2:] {
		values[parts[0]] = parts[1]
	}
	return values
}

// Run implements Conn. It sends the script's SHA, and the whole script if the master does not know
// the SHA.
func (r Redis) Run(ctx context.Context, s luascript.Script, args ...any) (any, error) {
	reply := r.Do(ctx, s.Command(false, nil, args...))[0]
	if err, failed := reply.(error); failed && strings.HasPrefix(err.Error(), "NOSCRIPT ") {
		reply = r.Do(ctx, s.Command(true, nil, args...))[0]
	}
	if err, failed := reply.(error); failed {
		return nil, err
	}
	return reply, nil
}

// runInt runs a script that returns an integer.
func runInt(ctx context.Context, w Conn, s luascript.Script, args ...any) (int64, error) {
	reply, err := w.Run(ctx, s, args...)
	if err != nil {
		return 0, err
	}
	n, ok := reply.(int64)
	if !ok {
		return 0, fmt.Errorf("unexpected reply %v", reply)
	}
	return n, nil
}

// runTexts runs a script that returns at least minCount texts. The number of further texts must be
// a multiple of multiple; zero allows no further texts.
func runTexts(ctx context.Context, w Conn, minCount, multiple int, s luascript.Script, args ...any) ([]string, error) {
	reply, err := w.Run(ctx, s, args...)
	if err != nil {
		return nil, err
	}
	parts, err := texts(reply)
	if more := len(parts) - minCount; err == nil && (more < 0 || more > 0 && (multiple == 0 || more%multiple != 0)) {
		err = fmt.Errorf("unexpected number of parts in a reply: %d", len(parts))
	}
	return parts, err
}

// databaseList holds a master's marker, its record of the longest TTL, and the databases with
// markers of their own, except database 0.
type databaseList struct {
	marker     string
	longestTTL time.Duration
	databases  []int
}

// databasesOf returns a master's marker, longest TTL and databases.
func databasesOf(ctx context.Context, w Conn) (databaseList, error) {
	parts, err := runTexts(ctx, w, 2, 1, script.ReadDatabases)
	if err != nil {
		return databaseList{}, err
	}
	list := databaseList{marker: parts[0], longestTTL: marker.ParseMillis(parts[1])}
	for _, text := range parts[2:] {
		db, err := strconv.Atoi(text)
		if err != nil {
			return databaseList{}, fmt.Errorf("%s: %w", script.DatabasesKey, err)
		}
		list.databases = append(list.databases, db)
	}
	return list, nil
}

// texts returns the elements of an array reply as texts.
func texts(reply any) ([]string, error) {
	parts, ok := reply.([]any)
	if !ok {
		return nil, fmt.Errorf("unexpected reply %v", reply)
	}
	parsed := make([]string, len(parts))
	for i, part := range parts {
		if text, ok := part.(string); ok {
			parsed[i] = text
		} else {
			parsed[i] = fmt.Sprint(part)
		}
	}
	return parsed, nil
}

// page holds one read of some values of a master.
type page struct {
	marker       string
	sequence     int64
	clockReading ClockReading
	values       map[string]entry // by key
}

// entry holds a value and its remaining time (negative: no expiry).
type entry struct {
	value    string
	timeLeft time.Duration
}

// pageSize is the approximate number of keys that are listed or read at a time.
const pageSize = 500

// readNames reads names of keys of a database, starting at a cursor, and returns the next cursor
// ("0": the end). Of the proxies' own keys it includes only those that begin with one of
// ownPrefixes.
func readNames(
	ctx context.Context, w Conn, db int, cursor string, ownPrefixes ...any,
) (names []string, next string, err error) {
	parts, err := runTexts(ctx, w, 1, 1, script.ReadNames, append([]any{db, cursor, pageSize}, ownPrefixes...)...)
	if err != nil {
		return nil, "", err
	}
	return parts[1:], parts[0], nil
}

// readValues reads some keys of a database, and a field of its sequence.
func readValues(ctx context.Context, w Conn, db int, field string, names []string) (page, error) {
	args := make([]any, 2, len(names)+2)
	args[0], args[1] = db, field
	for _, name := range names {
		args = append(args, name)
	}
	sent := time.Now()
	parts, err := runTexts(ctx, w, 4+2*len(names), 0, script.ReadValues, args...)
	if err != nil {
		return page{}, err
	}
	p := page{
		marker: parts[0], clockReading: ClockReading{SentAt: sent, ReceivedAt: time.Now(), ServerTime: parseTime(parts[2:4])},
		values: make(map[string]entry, len(names)),
	}
	p.sequence, _ = strconv.ParseInt(parts[1], 10, 64)
	for i, name := range names {
		if value, left := parts[4+2*i], parts[5+2*i]; left != "-2" {
			p.values[name] = entry{value, marker.ParseMillis(left)}
		}
	}
	return p, nil
}

// Locks describes the locks on a master, whether or not a majority granted them.
type Locks struct {
	// Count is the number of locks.
	Count int
	// Keys holds some of the keys that last longest, the longest first.
	Keys []LockedKey
}

// LockedKey describes a key with a lock. Left is the remaining time; negative if the key does not
// expire.
type LockedKey struct {
	Name string
	Left time.Duration
}

// maxListedKeys limits the number of keys in Locks.Keys.
const maxListedKeys = 5

// LocksOn describes the locks in these databases of a master. It includes blocking copies, which
// may stand for locks. A cell without a value, such as one after a release by ballot, does not
// count.
func LocksOn(ctx context.Context, w Conn, databases []int) (Locks, error) {
	var locks Locks
	for _, db := range databases {
		for cursor, first := "0", true; first || cursor != "0"; first = false {
			names, next, err := readNames(ctx, w, db, cursor)
			if err != nil {
				return Locks{}, err
			}
			p, err := readValues(ctx, w, db, marker.NoClaim, names)
			if err != nil {
				return Locks{}, err
			}
			for name, e := range p.values {
				locks.add(name, e)
			}
			cursor = next
		}
	}
	return locks, nil
}

func (l *Locks) add(name string, e entry) {
	if c := cell.Parse(e.value); !c.Value.Present && c.Form != cell.Blocking {
		return
	}
	l.Count++
	l.Keys = append(l.Keys, LockedKey{name, e.timeLeft})
	// As an unsigned number, a negative time (no expiry) is the largest.
	slices.SortFunc(l.Keys, func(a, b LockedKey) int {
		return cmp.Or(-cmp.Compare(uint64(a.Left), uint64(b.Left)), cmp.Compare(a.Name, b.Name))
	})
	l.Keys = l.Keys[:min(len(l.Keys), maxListedKeys)]
}

// Outlasts reports whether one of the locks may be held for longer than a TTL from now.
func (l Locks) Outlasts(ttl time.Duration) bool {
	return len(l.Keys) > 0 && (l.Keys[0].Left < 0 || l.Keys[0].Left > ttl)
}
