package quorum

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// fakeLife is what a fake master has beside its keys: who it is, its clock, what it
// tells of itself.
type fakeLife struct {
	life    int // it dies with a restart
	born    time.Time
	skew    time.Duration
	replID  string
	role    string
	policy  string
	evicted int64
	fsync   string
	forgot  bool // a command that forgets was run in this life
	twinOf  *fakeMaster
	// marked are the databases with a marker of their own.
	marked map[int]bool
	// filled counts the keys that catch-ups wrote.
	filled int
}

func newFakeLife() fakeLife {
	return fakeLife{
		life: 1, born: time.Now(), replID: "r", role: "master", policy: "noeviction",
		fsync: "everysec", marked: map[int]bool{},
	}
}

// snapshot is the data of a master, to come back to.
type snapshot struct {
	keys   map[Key]fakeEntry
	marked map[int]bool
}

func (f *fakeMaster) save() snapshot {
	f.mu.Lock()
	defer f.mu.Unlock()
	return snapshot{maps.Clone(f.keys), maps.Clone(f.marked)}
}

// restart is a kill -9 and a start with what the snapshot holds.
func (f *fakeMaster) restart(with snapshot) {
	f.set(func(f *fakeMaster) {
		f.life++
		f.born = f.now()
		f.forgot = false
		f.replID = fmt.Sprint("r", f.life)
	})
	f.load(with)
}

// load replaces the data, as a synchronisation from another server does.
func (f *fakeMaster) load(with snapshot) {
	f.set(func(f *fakeMaster) {
		f.keys, f.marked = map[Key]fakeEntry{}, map[int]bool{}
		maps.Copy(f.keys, with.keys)
		maps.Copy(f.marked, with.marked)
	})
}

// flush is FLUSHALL.
func (f *fakeMaster) flush() {
	f.set(func(f *fakeMaster) { f.forgot = true })
	f.load(snapshot{})
}

// flushDB is FLUSHDB.
func (f *fakeMaster) flushDB(db int) {
	f.set(func(f *fakeMaster) {
		f.forgot = true
		maps.DeleteFunc(f.keys, func(k Key, _ fakeEntry) bool { return k.DB == db })
		if db == 0 {
			clear(f.marked)
		}
	})
}

// step moves the master's clock.
func (f *fakeMaster) step(by time.Duration) { f.set(func(f *fakeMaster) { f.skew += by }) }

func (f *fakeMaster) now() time.Time { return time.Now().Add(f.skew) }

func (f *fakeMaster) told() time.Duration { return time.Duration(f.now().UnixNano()) }

func (f *fakeMaster) runID() string {
	if f.twinOf != nil {
		return f.twinOf.runID()
	}
	return fmt.Sprintf("%p-%d", f, f.life)
}

func (f *fakeMaster) own(db int, name string) string {
	return f.look(Key{DB: db, Name: name}).Value
}

func (f *fakeMaster) write(db int, name, value string) {
	f.put(Key{DB: db, Name: name}, Entry{Present: true, Value: value, Left: Endless})
}

func (f *fakeMaster) remove(db int, names ...string) {
	for _, name := range names {
		delete(f.keys, Key{DB: db, Name: name})
	}
}

// looks are what the parts of a batch end with.
func (f *fakeMaster) looks(dbs []int, sent time.Time) []seen {
	var all []seen
	for i, db := range dbs {
		if n := len(all); n > 0 && all[n-1].db == db {
			all[n-1].to = i + 1
			continue
		}
		all = append(all, seen{db: db, from: i, to: i + 1, marker: f.own(db, markerKey), sighting: f.sighting(sent)})
	}
	return all
}

func (f *fakeMaster) sighting(sent time.Time) sighting {
	return sighting{sent: sent, got: time.Now(), told: f.told()}
}

// takes has a witness, if there is one, see the looks.
func (w *witness) takes(looks []seen) {
	if w != nil {
		w.seen = looks
	}
}

// plain knows one command: the record of the longest TTL.
func (f *fakeMaster) plain(c Change) reply {
	if c.args[1] == longestScript.src {
		f.raise(fmt.Sprint(c.args[3]))
		return reply{vote: voteYes, said: int64(1)}
	}
	return reply{err: fmt.Errorf("ERR unknown command %v", c.args)}
}

func (f *fakeMaster) raise(ms string) {
	if milliseconds(f.own(0, longestKey)) < milliseconds(ms) {
		f.write(0, longestKey, ms)
	}
}

func (f *fakeMaster) examine(context.Context) (v vitals, err error) {
	sent := time.Now()
	err = f.deliver(func() {
		v = vitals{
			version: "7.0.15", runID: f.runID(), replID: f.replID, role: f.role, policy: f.policy,
			uptime: f.now().Sub(f.born).Truncate(time.Second), evicted: f.evicted, appendfsync: f.fsync,
			neverForgot: !f.forgot, empty: len(f.keys) == 0,
			marker: f.own(0, markerKey), record: f.own(0, recordKey), longest: milliseconds(f.own(0, longestKey)),
			sighting: f.sighting(sent),
		}
	})
	v.sighting.got = time.Now()
	return v, err
}

func (f *fakeMaster) databases(context.Context) (r roll, err error) {
	err = f.deliver(func() {
		r = roll{marker: f.own(0, markerKey), longest: milliseconds(f.own(0, longestKey))}
		r.databases = slices.Collect(maps.Keys(f.marked))
	})
	return r, err
}

func (f *fakeMaster) page(_ context.Context, db int, _ string) (p page, err error) {
	sent := time.Now()
	err = f.deliver(func() {
		p = page{marker: f.own(db, markerKey), sighting: f.sighting(sent), cursor: "0"}
		for key := range maps.Clone(f.keys) {
			if e := f.look(key); key.DB == db && e.Present && !strings.HasPrefix(key.Name, ownPrefix) {
				p.keys, p.entries = append(p.keys, key.Name), append(p.entries, e)
			}
		}
	})
	p.sighting.got = time.Now()
	return p, err
}

// amend does what the scripts do.
func (f *fakeMaster) amend(_ context.Context, s script, args ...any) (did int64, err error) {
	words := make([]string, len(args))
	for i, a := range args {
		words[i] = fmt.Sprint(a)
	}
	scripts := map[string]func([]string) int64{
		condemnScript.sha: f.condemn, admitScript.sha: f.admit, enrolScript.sha: f.enrol, claimScript.sha: f.claim,
		openScript.sha: f.open, fillScript.sha: f.fill,
		longestScript.sha: func(w []string) int64 { f.raise(w[0]); return 1 },
	}
	err = f.deliver(func() { did = scripts[s.sha](words) })
	return did, err
}

func (f *fakeMaster) condemn(w []string) int64 {
	if f.own(0, markerKey) != w[0] || f.own(0, recordKey) != w[1] {
		return 0
	}
	for db := range f.marked {
		f.remove(db, markerKey, recordKey)
	}
	f.remove(0, markerKey, claimKey)
	f.write(0, recordKey, w[2])
	return 1
}

func (f *fakeMaster) admit(w []string) int64 {
	proof := w[4]
	switch {
	case f.own(0, markerKey) != w[0] || f.own(0, recordKey) != w[1]:
		return 0
	case proof == "fresh" && len(f.keys) > 0:
		return -1
	}
	for db := range f.marked {
		if proof == "remark" && f.own(db, markerKey) != inDatabase(w[0], db) || proof == "caughtup" && f.own(db, recordKey) != w[1] {
			return -1
		}
	}
	for db := range f.marked {
		f.write(db, markerKey, inDatabase(w[2], db))
		f.remove(db, recordKey)
	}
	f.write(0, markerKey, w[2])
	f.remove(0, recordKey, claimKey)
	f.raise(w[3])
	return 1
}

func (f *fakeMaster) enrol(w []string) int64 {
	db, _ := strconv.Atoi(w[1])
	switch {
	case f.own(0, markerKey) != w[0]:
		return 0
	case !f.marked[db]:
		f.marked[db] = true
		f.write(db, markerKey, inDatabase(w[0], db))
		return 1
	case f.own(db, markerKey) == inDatabase(w[0], db):
		return 1
	}
	f.condemn([]string{w[0], f.own(0, recordKey), w[2]})
	return -1
}

func (f *fakeMaster) claim(w []string) int64 {
	switch has := f.own(0, claimKey); {
	case f.own(0, recordKey) != w[0]:
		return -1
	case has != "" && has != w[1]:
		return 0
	}
	f.put(Key{Name: claimKey}, Entry{Present: true, Value: w[1], Left: milliseconds(w[2])})
	return 1
}

func (f *fakeMaster) open(w []string) int64 {
	if f.own(0, recordKey) != w[0] {
		return -1
	}
	db, _ := strconv.Atoi(w[1])
	f.marked[db] = true
	f.write(db, recordKey, w[0])
	return 1
}

func (f *fakeMaster) fill(w []string) int64 {
	db, _ := strconv.Atoi(w[1])
	if f.own(0, recordKey) != w[0] || f.own(db, recordKey) != w[0] {
		return -1
	}
	for rest := w[2:]; len(rest) > 0; rest = rest[3:] {
		f.filled++
		key, left := Key{DB: db, Name: rest[0]}, Endless
		if rest[2] != "-1" {
			left = milliseconds(rest[2])
		}
		has := f.look(key)
		switch there := has.Present && has.Value == rest[1]; {
		case there && rest[2] == "-2":
			delete(f.keys, key)
		case rest[2] == "-2", there && compareLeft(has.Left, left) >= 0 && !strings.HasSuffix(w[0], " "+string(reasonClock)):
		default:
			f.put(key, Entry{Present: true, Value: rest[1], Left: left})
		}
	}
	return 1
}

// fakeLink is one proxy's way to a fake master: its connections do not outlive the
// master.
type fakeLink struct {
	*fakeMaster
	life int
	// lag is how much longer a batch is on its way than the master's latency.
	lag time.Duration
}

func (l *fakeLink) exec(ctx context.Context, ops []*op, replies []reply, w *witness) error {
	if !l.stands() {
		for i := range replies {
			replies[i] = reply{err: errOtherServer, unknown: true}
		}
		return errOtherServer
	}
	time.Sleep(l.lag)
	return l.fakeMaster.exec(ctx, ops, replies, w)
}

func (l *fakeLink) probe(ctx context.Context) (time.Duration, error) {
	l.set(func(f *fakeMaster) { l.life = f.life })
	return l.fakeMaster.probe(ctx)
}

func (l *fakeLink) examine(ctx context.Context) (vitals, error) {
	if !l.stands() {
		return vitals{}, errOtherServer
	}
	return l.fakeMaster.examine(ctx)
}

func (l *fakeLink) amend(ctx context.Context, s script, args ...any) (int64, error) {
	if !l.stands() {
		return 0, errOtherServer
	}
	return l.fakeMaster.amend(ctx, s, args...)
}

func (l *fakeLink) page(ctx context.Context, db int, cursor string) (page, error) {
	if !l.stands() {
		return page{}, errOtherServer
	}
	return l.fakeMaster.page(ctx, db, cursor)
}

func (l *fakeLink) stands() (yes bool) {
	l.set(func(f *fakeMaster) { yes = l.life == f.life })
	return yes
}
