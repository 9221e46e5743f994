package quorum

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// ward is what the guard asks of a master and does there, outside of batches.
type ward interface {
	// examine has the master tell of itself.
	examine(ctx context.Context) (vitals, error)
	// amend runs one of the scripts that change the marker and the record.
	amend(ctx context.Context, s script, args ...any) (int64, error)
	// databases are the numbers of those with a marker of their own, beside database 0.
	databases(ctx context.Context) (roll, error)
	// page reads keys of a database, from a cursor on.
	page(ctx context.Context, db int, cursor string) (page, error)
}

// roll is what databases answers.
type roll struct {
	marker    string
	longest   time.Duration
	databases []int
}

// page is a part of a database: entries by key, and the cursor of the next part ("0":
// there is none).
type page struct {
	marker   string
	sighting sighting
	cursor   string
	keys     []string
	entries  []Entry
}

// pageSize is how many keys a page has, about.
const pageSize = 500

// errOtherServer is the cause of a connection that reached another server, or another
// life of it, than those before.
var errOtherServer = errors.New("it is another server process than before")

// seen is what the end of a part of a batch, of one database, tells of the master.
type seen struct {
	db, from, to int
	marker       string
	sighting     sighting
}

// witness has a batch end each of its parts with a look at the marker and the clock.
type witness struct {
	// expect is the marker under which the votes of the batch count; empty: none.
	expect string
	seen   []seen
}

// look adds the two commands of a witness to the part of a batch.
func look(ctx context.Context, pipe redis.Pipeliner) (marker *redis.StringCmd, now *redis.TimeCmd) {
	return pipe.Get(ctx, markerKey), pipe.Time(ctx)
}

// sighted makes a sighting of an answer to TIME.
func sighted(sent, got time.Time, now *redis.TimeCmd) sighting {
	if now.Err() != nil {
		return sighting{}
	}
	return sighting{sent: sent, got: got, told: time.Duration(now.Val().UnixNano())}
}

func (t *redisTransport) examine(ctx context.Context) (vitals, error) {
	ctx, cancel := context.WithTimeout(ctx, t.timeout)
	defer cancel()
	pipe := t.client(0).Pipeline()
	info, stats := pipe.Info(ctx), pipe.Info(ctx, "commandstats")
	fsync, rewrite := pipe.ConfigGet(ctx, "appendfsync"), pipe.ConfigGet(ctx, "no-appendfsync-on-rewrite")
	longest, record := pipe.Get(ctx, longestKey), pipe.Get(ctx, recordKey)
	size := pipe.DBSize(ctx)
	marker, now := look(ctx, pipe)
	sent := time.Now()
	_, _ = pipe.Exec(ctx)
	for _, get := range []*redis.StringCmd{marker, record, longest} {
		if err := get.Err(); err != nil && !errors.Is(err, redis.Nil) {
			return vitals{}, err
		}
	}
	v := vitals{marker: marker.Val(), record: record.Val(), longest: milliseconds(longest.Val())}
	v.sighting = sighted(sent, time.Now(), now)
	v.readInfo(info.Val())
	v.empty = size.Err() == nil && size.Val() == 0 && !hasDatabases(info.Val())
	v.neverForgot = neverForgot(stats.Val())
	if set, err := fsync.Result(); err == nil && v.appendfsync == "" {
		v.appendfsync = set["appendfsync"]
	}
	v.rewriteUnsynced = rewrite.Val()["no-appendfsync-on-rewrite"] != "no"
	return v, now.Err()
}

func milliseconds(text string) time.Duration {
	ms, _ := strconv.ParseInt(text, 10, 64)
	return time.Duration(ms) * time.Millisecond
}

func (t *redisTransport) amend(ctx context.Context, s script, args ...any) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, t.timeout)
	defer cancel()
	return t.run(ctx, s, args...).Int64()
}

// run sends a script by its SHA, and whole where it is not known.
func (t *redisTransport) run(ctx context.Context, s script, args ...any) *redis.Cmd {
	cmd := t.client(0).EvalSha(ctx, s.sha, nil, args...)
	if isNoScript(cmd.Err()) {
		cmd = t.client(0).Eval(ctx, s.src, nil, args...)
	}
	return cmd
}

func (t *redisTransport) databases(ctx context.Context) (roll, error) {
	ctx, cancel := context.WithTimeout(ctx, t.timeout)
	defer cancel()
	pipe := t.client(0).Pipeline()
	members, longest := pipe.SMembers(ctx, databasesKey), pipe.Get(ctx, longestKey)
	marker := pipe.Get(ctx, markerKey)
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
		return roll{}, err
	}
	r := roll{marker: marker.Val(), longest: milliseconds(longest.Val())}
	for _, text := range members.Val() {
		db, err := strconv.Atoi(text)
		if err != nil {
			return roll{}, fmt.Errorf("%s: %w", databasesKey, err)
		}
		r.databases = append(r.databases, db)
	}
	return r, nil
}

func (t *redisTransport) page(ctx context.Context, db int, cursor string) (page, error) {
	ctx, cancel := context.WithTimeout(ctx, t.timeout)
	defer cancel()
	sent := time.Now()
	told, err := t.run(ctx, pageScript, db, cursor, pageSize).Slice()
	if err != nil {
		return page{}, err
	}
	return decodePage(told, sent, time.Now())
}

// decodePage takes {marker, cursor, seconds, microseconds, key, value, PTTL, …}.
func decodePage(told []any, sent, got time.Time) (page, error) {
	if len(told) < 4 || len(told)%3 != 1 {
		return page{}, fmt.Errorf("unexpected answer of %d parts", len(told))
	}
	p := page{}
	p.marker, _ = told[0].(string)
	p.cursor, _ = told[1].(string)
	now := time.Duration(0)
	for i, unit := range []time.Duration{time.Second, time.Microsecond} {
		text, _ := told[2+i].(string)
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return page{}, fmt.Errorf("unexpected time: %w", err)
		}
		now += time.Duration(n) * unit
	}
	p.sighting = sighting{sent: sent, got: got, told: now}
	for rest := told[4:]; len(rest) > 0; rest = rest[3:] {
		key, _ := rest[0].(string)
		value, _ := rest[1].(string)
		left, _ := rest[2].(int64)
		if left == -2 {
			continue // it ended between the two looks at it
		}
		p.keys = append(p.keys, key)
		p.entries = append(p.entries, Entry{Present: true, Value: value, Left: time.Duration(left) * time.Millisecond})
	}
	return p, nil
}

// pin has every connection reach the same life of the same server: without a batch
// that follows on a broken connection being taken for one on the server before.
func (t *redisTransport) pin() { t.options.OnConnect = t.identify }

// identify asks a new connection for the server's run_id. A server that does not tell
// is not told apart.
func (t *redisTransport) identify(ctx context.Context, conn *redis.Conn) error {
	text, err := conn.Info(ctx, "server").Result()
	var said redis.Error
	if err != nil && !errors.As(err, &said) {
		return err
	}
	runID := orUntold(infoFields(text)["run_id"])
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.runID == "" {
		t.runID = runID
	}
	if t.runID != runID {
		return errOtherServer
	}
	return nil
}

// renew lets the next connection reach another server than those before, which are
// closed.
func (t *redisTransport) renew() {
	t.close()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.runID = ""
}

// guardScripts are loaded with the others.
func guardScripts() []script {
	return []script{condemnScript, admitScript, enrolScript, claimScript, openScript, fillScript, pageScript}
}
