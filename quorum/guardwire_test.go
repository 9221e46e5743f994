package quorum

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// startRedis starts a redis-server of the test's own and returns a way to it.
func startRedis(t *testing.T, args ...string) *redisTransport {
	t.Helper()
	path, err := exec.LookPath("redis-server")
	if err != nil {
		t.Fatal("redis-server is not installed: apt-get install redis-server")
	}
	dir, err := os.MkdirTemp("", "redis") // shorter than t.TempDir, as a socket's path must be
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket := filepath.Join(dir, "socket")
	all := []string{"--port", "0", "--unixsocket", socket, "--dir", dir, "--save", "", "--appendonly", "no"}
	cmd := exec.Command(path, append(all, args...)...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	tr, err := newRedisTransport("unix://"+socket, 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tr.close)
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		_, err := tr.probe(t.Context())
		if err == nil {
			return tr
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

// amendment is one thing done to the marker and the record of a master, or to its data.
type amendment struct {
	script script
	args   []any
	flush  int // the database to be flushed instead; -1: none
	set    Key // the key to be set instead
}

// randomAmendment mostly relies on what is so, and sometimes on what is not.
func randomAmendment(rnd *rand.Rand, f *fakeMaster, n int) amendment {
	text := fmt.Sprint("text", n, []string{"", " " + string(reasonClock)}[rnd.IntN(2)])
	marker, record := f.own(0, markerKey), f.own(0, recordKey)
	if rnd.IntN(5) == 0 {
		marker = "wrong"
	}
	if rnd.IntN(5) == 0 {
		record = "wrong"
	}
	db := 1 + rnd.IntN(2)
	a := amendment{flush: -1}
	switch rnd.IntN(12) {
	case 0:
		a.script, a.args = condemnScript, []any{marker, record, text}
	case 1, 2:
		proof := []string{"fresh", "remark", "caughtup", "lease"}[rnd.IntN(4)]
		if proof == "remark" && marker == "" {
			proof = "lease" // nobody says "remark" without a marker
		}
		a.script, a.args = admitScript, []any{marker, record, text, rnd.IntN(100), proof}
	case 3, 4:
		a.script, a.args = enrolScript, []any{cmp.Or(marker, "wrong"), db, text}
	case 5:
		a.script, a.args = claimScript, []any{record, fmt.Sprint("proxy", rnd.IntN(2)), 60000}
	case 6, 7:
		a.script, a.args = openScript, []any{record, db}
	case 8, 9:
		left := []any{"-1", "-2", "60000", "90000"}[rnd.IntN(4)]
		a.script, a.args = fillScript, []any{record, rnd.IntN(3), fmt.Sprint("k", rnd.IntN(3)), fmt.Sprint("v", rnd.IntN(2)), left}
	case 10:
		a.script, a.args = longestScript, []any{rnd.IntN(100)}
	default:
		if a.flush = rnd.IntN(6); a.flush > 2 {
			a.flush, a.set = -1, Key{DB: db, Name: "k1"}
		}
	}
	return a
}

// TestScriptsDoWhatTheFakeDoes runs the scripts on a real Redis, and the fake master that
// all other tests rely on beside it: they answer and hold the same.
func TestScriptsDoWhatTheFakeDoes(t *testing.T) {
	tr := startRedis(t)
	for seed := range uint64(40) {
		tr.client(0).FlushAll(t.Context())
		fake := newFakeMaster()
		rnd := rand.New(rand.NewPCG(seed, 5))
		for n := range 60 {
			a := randomAmendment(rnd, fake, n)
			switch {
			case a.flush >= 0:
				tr.client(a.flush).FlushDB(t.Context())
				fake.flushDB(a.flush)
				continue
			case a.set != (Key{}):
				tr.client(a.set.DB).Set(t.Context(), a.set.Name, "v1", time.Minute)
				fake.put(a.set, Entry{Present: true, Value: "v1", Left: time.Minute})
				continue
			}
			got, err := tr.amend(t.Context(), a.script, a.args...)
			want, _ := fake.amend(context.Background(), a.script, a.args...)
			if err != nil || got != want {
				t.Fatalf("seed %d, %d: %v of\n%s\ngot %d, %v, want %d", seed, n, a.args, a.script.src, got, err, want)
			}
			if real, faked := contents(t, tr), fake.contents(); !maps.Equal(real, faked) {
				t.Fatalf("seed %d, %d: %v of\n%s\nRedis holds %v\nthe fake     %v", seed, n, a.args, a.script.src, real, faked)
			}
		}
	}
}

// contents are all keys of three databases with their values, and whether they end.
func contents(t *testing.T, tr *redisTransport) map[Key]string {
	all := map[Key]string{}
	for db := range 3 {
		for _, name := range tr.client(db).Keys(t.Context(), "*").Val() {
			if name == databasesKey {
				members := tr.client(db).SMembers(t.Context(), name).Val()
				slices.Sort(members)
				all[Key{db, name}] = fmt.Sprint(members)
				continue
			}
			value, left := tr.client(db).Get(t.Context(), name).Val(), tr.client(db).PTTL(t.Context(), name).Val()
			all[Key{db, name}] = fmt.Sprintf("%s, ends in about %v", value, left.Round(10*time.Second))
		}
	}
	return all
}

func (f *fakeMaster) contents() map[Key]string {
	all := map[Key]string{}
	for key := range maps.Clone(f.keys) {
		if e := f.look(key); e.Present {
			all[key] = fmt.Sprintf("%s, ends in about %v", e.Value, e.Left.Round(10*time.Second))
		}
	}
	if len(f.marked) > 0 {
		dbs := slices.Sorted(maps.Keys(f.marked))
		all[Key{0, databasesKey}] = fmt.Sprint(dbs)
	}
	return all
}

// TestExamine reads what a real Redis tells of itself.
func TestExamine(t *testing.T) {
	tr := startRedis(t, "--maxmemory-policy", "volatile-ttl")
	tr.client(0).Set(t.Context(), markerKey, "m", 0)
	tr.client(0).Set(t.Context(), longestKey, "1500", 0)
	v, err := tr.examine(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(v.runID) != 40 || len(v.replID) != 40 || v.role != "master" || v.policy != "volatile-ttl" || v.appendfsync != "off" ||
		v.rewriteUnsynced || !v.neverForgot || v.empty || v.marker != "m" || v.record != "" || v.longest != 1500*time.Millisecond {
		t.Errorf("got %+v", v)
	}
	apart := v.sighting.told - time.Duration(time.Now().UnixNano())
	if apart.Abs() > time.Minute || v.sighting.got.Before(v.sighting.sent) {
		t.Errorf("sighting %+v", v.sighting)
	}
	tr.client(3).Set(t.Context(), "k", "v", 0)
	tr.client(0).FlushDB(t.Context())
	if v, err = tr.examine(t.Context()); err != nil || v.empty || v.neverForgot || v.marker != "" {
		t.Errorf("after FLUSHDB, with a key in database 3: got %+v, %v", v, err)
	}
	tr.client(0).FlushAll(t.Context())
	if v, err = tr.examine(t.Context()); err != nil || !v.empty {
		t.Errorf("after FLUSHALL: got %+v, %v", v, err)
	}
}

// TestPages reads a database of many keys, some of which are no locks.
func TestPages(t *testing.T) {
	tr := startRedis(t)
	c := tr.client(2)
	_, err := c.Pipelined(t.Context(), func(pipe redis.Pipeliner) error {
		for i := range 3 * pageSize {
			pipe.Set(t.Context(), fmt.Sprint("k", i), "v", time.Minute)
		}
		pipe.Set(t.Context(), "endless", "v", 0)
		pipe.Set(t.Context(), markerKey, "m@2", 0)
		pipe.HSet(t.Context(), "hash", "f", "v")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]Entry{}
	for cursor := ""; cursor != "0"; {
		p, err := tr.page(t.Context(), 2, cmp.Or(cursor, "0"))
		if err != nil || p.marker != "m@2" || p.sighting.isZero() {
			t.Fatalf("%+v, %v", p, err)
		}
		for i, key := range p.keys {
			got[key] = p.entries[i]
		}
		cursor = p.cursor
	}
	if len(got) != 3*pageSize+1 || got["endless"].Left >= 0 {
		t.Errorf("%d keys, endless %+v", len(got), got["endless"])
	}
	if e := got["k7"]; e.Value != "v" || e.Left < 50*time.Second || e.Left > time.Minute {
		t.Errorf("k7: %+v", e)
	}
}

// TestPinnedConnections reach one life of one server only, until the prober says
// otherwise.
func TestPinnedConnections(t *testing.T) {
	tr := startRedis(t)
	tr.pin()
	tr.renew()
	tr.runID = "another server's"
	if _, err := tr.examine(t.Context()); err == nil || causeText(err) != errOtherServer.Error() {
		t.Errorf("got %v, want %v", err, errOtherServer)
	}
	if _, err := tr.probe(t.Context()); err != nil {
		t.Errorf("the prober: %v", err)
	}
	if _, err := tr.examine(t.Context()); err != nil {
		t.Errorf("after the prober: %v", err)
	}
}

// TestGuardOnAServerThatTellsNothing, as the embedded ones: they vote after a fresh start,
// and not after they were flushed.
func TestGuardOnAServerThatTellsNothing(t *testing.T) {
	masters, c := startMasters(t, 3)
	if _, err := c.Commit(t.Context(), Acquire(job, token, time.Minute)); err != nil {
		t.Fatal(err)
	}
	for _, m := range masters[:2] {
		m.FlushAll()
	}
	if _, err := c.Commit(t.Context(), Acquire(job, rival, time.Minute)); err == nil {
		t.Error("granted twice")
	}
}
