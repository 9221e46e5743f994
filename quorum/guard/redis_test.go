package guard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"redlock-proxy/internal/luascript"
	"redlock-proxy/quorum/cell"
	"redlock-proxy/quorum/guard/marker"
	"redlock-proxy/quorum/guard/reconfig"
	"redlock-proxy/quorum/guard/script"

	"github.com/redis/go-redis/v9"
)

// realRedis holds connections to a redis-server, for the guard and for clients of each database.
type realRedis struct {
	Redis
	Client func(db int) *redis.Client
}

// exchange sends all commands at once, and returns the replies.
func exchange(ctx context.Context, client *redis.Client, commands [][]any) (replies []any) {
	sent, _ := client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for _, words := range commands {
			pipe.Do(ctx, words...)
		}
		return nil
	})
	for _, cmd := range sent {
		reply, err := cmd.(*redis.Cmd).Result()
		switch {
		case errors.Is(err, redis.Nil):
			reply = nil
		case err != nil:
			reply = err
		}
		replies = append(replies, reply)
	}
	return replies
}

// startRedis starts a redis-server for the test, and returns a connection to it.
func startRedis(t *testing.T, args ...string) realRedis {
	t.Helper()
	path, err := exec.LookPath("redis-server")
	if err != nil {
		t.Fatal("redis-server is not installed: apt-get install redis-server")
	}
	// dir is shorter than t.TempDir, because the path of a socket is limited.
	dir, err := os.MkdirTemp("", "redis")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket := filepath.Join(dir, "socket")
	options := []string{"--port", "0", "--unixsocket", socket, "--dir", dir, "--save", "", "--appendonly", "no"}
	cmd := exec.Command(path, append(options, args...)...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	clients := map[int]*redis.Client{}
	client := func(db int) *redis.Client {
		if clients[db] == nil {
			clients[db] = redis.NewClient(&redis.Options{Network: "unix", Addr: socket, DB: db, Protocol: 2,
				DisableIdentity: true})
			t.Cleanup(func() { _ = clients[db].Close() })
		}
		return clients[db]
	}
	do := func(ctx context.Context, commands ...[]any) []any { return exchange(ctx, client(0), commands) }
	w := realRedis{Redis{Do: do}, client}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		err := w.Client(0).Ping(t.Context()).Err()
		if err == nil {
			return w
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

// TestExamine checks the report of a real Redis.
func TestExamine(t *testing.T) {
	tr := startRedis(t, "--maxmemory-policy", "volatile-ttl")
	tr.Client(0).Set(t.Context(), script.MarkerKey, "m", 0)
	tr.Client(0).Set(t.Context(), script.MaxTTLKey, "1500", 0)
	v, err := tr.Examine(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(v.RunID) != 40 || len(v.ReplID) != 40 || v.Role != "master" || v.Policy != "volatile-ttl" ||
		v.Appendfsync != "off" || v.RewriteUnsynced || v.Empty || v.Marker.Text != "m" || v.Marker.Valid ||
		v.Record.Text != "" ||
		v.LongestTTL != 1500*time.Millisecond {
		t.Errorf("got %+v", v)
	}
	offset := v.ClockReading.ServerTime - time.Duration(time.Now().UnixNano())
	if offset.Abs() > time.Minute || v.ClockReading.ReceivedAt.Before(v.ClockReading.SentAt) {
		t.Errorf("sighting %+v", v.ClockReading)
	}
	for id, p := range map[string]Proxy{"x": {Masters: 5, GuardOn: true, Servers: unknownServers},
		"y": {Masters: 3, GuardOn: true, Servers: unknownServers}} {
		if _, err := tr.Run(t.Context(), script.Announce, id, p.Announcement(), 3000); err != nil {
			t.Fatal(err)
		}
	}
	if v, err = tr.Examine(t.Context()); err != nil || len(v.Differences) != 1 || v.Empty {
		t.Errorf("with two proxies: got %+v, %v", v, err)
	}
	tr.Client(0).Del(t.Context(), script.MarkerKey, script.MaxTTLKey)
	if v, err = tr.Examine(t.Context()); err != nil || !v.Empty {
		t.Errorf("with nothing but two proxies: got %+v, %v", v, err)
	}
	tr.Client(3).Set(t.Context(), "k", "v", 0)
	tr.Client(0).FlushDB(t.Context())
	if v, err = tr.Examine(t.Context()); err != nil || v.Empty || v.Marker.Text != "" {
		t.Errorf("after FLUSHDB, with a key in database 3: got %+v, %v", v, err)
	}
	tr.Client(0).FlushAll(t.Context())
	if v, err = tr.Examine(t.Context()); err != nil || !v.Empty {
		t.Errorf("after FLUSHALL: got %+v, %v", v, err)
	}
}

// TestReadPages checks that reading a database page by page returns all locks, and no other keys.
func TestReadPages(t *testing.T) {
	tr := startRedis(t)
	c := tr.Client(2)
	_, err := c.Pipelined(t.Context(), func(pipe redis.Pipeliner) error {
		for i := range 3 * pageSize {
			pipe.Set(t.Context(), fmt.Sprint("k", i), "v", time.Minute)
		}
		pipe.Set(t.Context(), "endless", "v", 0)
		pipe.Set(t.Context(), cell.FenceKey("k7"), "12", time.Hour)
		pipe.Set(t.Context(), script.MarkerKey, "m@2", 0)
		pipe.HSet(t.Context(), script.SequenceKey, "n@2", 7)
		pipe.HSet(t.Context(), "hash", "f", "v")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]entry{}
	for cursor := ""; cursor != "0"; {
		names, next, err := readNames(t.Context(), tr, 2, cmp.Or(cursor, "0"))
		if err != nil {
			t.Fatal(err)
		}
		p, err := readValues(t.Context(), tr, 2, "n@2", append(names, "none"))
		if err != nil || p.marker != "m@2" || p.sequence != 7 || p.clockReading.IsZero() {
			t.Fatalf("%+v, %v", p, err)
		}
		maps.Copy(got, p.values)
		cursor = next
	}
	if len(got) != 3*pageSize+1 || got["endless"].timeLeft >= 0 {
		t.Errorf("%d keys, endless %+v", len(got), got["endless"])
	}
	if e := got["k7"]; e.value != "v" || e.timeLeft < 50*time.Second || e.timeLeft > time.Minute {
		t.Errorf("k7: %+v", e)
	}
}

// TestFencesAfterFill checks that fence counters are listed on request, and that script.Fill
// raises, but never lowers, a counter.
func TestFencesAfterFill(t *testing.T) {
	tr := startRedis(t)
	c, k := tr.Client(2), cell.FenceKey("k")
	for _, db := range []int{0, 2} {
		tr.Client(db).Set(t.Context(), script.RecordKey, "r", 0)
	}
	expiry := strconv.FormatInt(time.Now().Add(time.Minute).UnixMilli(), 10)
	for _, step := range []struct{ fenceBefore, raiseTo, want string }{
		{"", "9", "9"}, {"9", "10", "10"}, {"10", "9", "10"}, {"1700000000000001", "1700000000000002", "1700000000000002"},
		{"9007199254740990", "9007199254740991", "9007199254740991"}, {"9007199254740992", "3", "3"},
		{"none", "5", "5"}, {"00000000000000000099", "5", "5"},
	} {
		c.Set(t.Context(), k, step.fenceBefore, 0)
		if got := runScript(t, tr, script.Fill, "r", 2, k, "raise", step.raiseTo, expiry); got != "1" {
			t.Fatalf("Fill: %s", got)
		}
		if got := c.Get(t.Context(), k).Val(); got != step.want {
			t.Errorf("%q raised to %s is %s", step.fenceBefore, step.raiseTo, got)
		}
	}
	if left := c.PTTL(t.Context(), k).Val(); left <= 0 || left > time.Minute {
		t.Errorf("it stays for %v", left)
	}
	if got := runScript(t, tr, script.Fill, "r", 2, k, "raise", "6", "-1"); got != "1" ||
		c.PTTL(t.Context(), k).Val() != -1 {
		t.Errorf("one without an end: %s, %v", got, c.PTTL(t.Context(), k).Val())
	}
	names, _, err := readNames(t.Context(), tr, 2, "0", cell.FencePrefix)
	if err != nil || !slices.Equal(names, []string{k}) {
		t.Errorf("%q, %v", names, err)
	}
}

// runScript runs a script and returns its reply as text.
func runScript(t *testing.T, w Conn, s luascript.Script, args ...any) string {
	t.Helper()
	reply, err := w.Run(t.Context(), s, args...)
	if err != nil {
		t.Fatalf("%v\n%s", err, s.Source)
	}
	return fmt.Sprint(reply)
}

// TestMarkerScripts runs the scripts on a real Redis, from a fresh start to a proof of complete
// data.
func TestMarkerScripts(t *testing.T) {
	w := startRedis(t)
	want := func(label, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: got %s, want %s", label, got, want)
		}
	}
	first := marker.Marker{RunID: "1", ReplID: "r", Nonce: "a", Proof: marker.ProofFresh, Address: "m"}
	quarantined := marker.Record{RunID: "1", Nonce: "x", WrittenAt: 1, Claim: "a", Reason: string(Restarted)}
	valueIn := func(db int, key string) string { return w.Client(db).Get(t.Context(), key).Val() }
	nextSeq := func(db int, nonce string) string {
		field := marker.AppendDatabase(nonce, db)
		return fmt.Sprint(w.Client(db).HIncrBy(t.Context(), script.SequenceKey, field, 1).Val() - script.FirstSeq)
	}

	want("admit", runScript(t, w, script.Admit, "", "", first.String(), 5, marker.ProofFresh), "1")
	want("marker", valueIn(0, script.MarkerKey), first.String()+"@0")
	report, _ := w.Examine(t.Context())
	if since := report.ClockReading.ServerTime - report.AdmittedAt; since < 0 || since > time.Minute {
		t.Errorf("admitted %v ago", since)
	}
	want("enrol", runScript(t, w, script.Enrol, first.String(), 3, "lost"), "1")
	want("again", runScript(t, w, script.Enrol, first.String(), 3, "lost"), "1")
	want("marker of 3", valueIn(3, script.MarkerKey), first.String()+"@3")
	want("sequence", nextSeq(0, "a")+nextSeq(0, "a")+nextSeq(3, "a"), "121")
	want("canaries", runScript(t, w, script.RenewCanaries, first.String()+"@0", "c", 9000, "a"),
		fmt.Sprintf("[3  c %d 0  c %d]", script.FirstSeq+1, script.FirstSeq+2))
	want("canaries later", runScript(t, w, script.RenewCanaries, first.String()+"@0", "d", 9000, "a"),
		fmt.Sprintf("[3 c c %d 0 c c %d]", script.FirstSeq+1, script.FirstSeq+2))
	want("no canaries without the marker", runScript(t, w, script.RenewCanaries, "other", "d", 9000, "a"), "[]")

	w.Client(0).Do(t.Context(), "SWAPDB", 0, 3)
	want("sequence of swapped databases",
		fmt.Sprint(w.Client(0).HIncrBy(t.Context(), script.SequenceKey, "a@0", 1).Val()), "1")
	w.Client(0).HDel(t.Context(), script.SequenceKey, "a@0")
	w.Client(0).Do(t.Context(), "SWAPDB", 0, 3)

	want("quarantine of another", runScript(t, w, script.Quarantine, "other", "", quarantined.String()), "0")
	want("quarantine", runScript(t, w, script.Quarantine, first.String()+"@0", "", quarantined.String()), "1")
	want("markers", valueIn(0, script.MarkerKey)+valueIn(3, script.MarkerKey), "")
	want("what is claimed", runScript(t, w, script.ReadSequences, "a"),
		fmt.Sprintf("[a@3 %d a@0 %d]", script.FirstSeq+1, script.FirstSeq+2))
	second := first
	second.Nonce, second.Proof = "b", marker.ProofIntact
	want("younger data are known", runScript(t, w, script.Admit, "", quarantined.String(), second.String(), 5,
		marker.ProofIntact, "a", "a@3", int64(script.FirstSeq+2)), "-1")
	want("remark", runScript(t, w, script.Admit, "", quarantined.String(), second.String(), 5, marker.ProofIntact, "a",
		"a@3", int64(script.FirstSeq+1)), "1")
	want("sequence begins anew", nextSeq(0, "b")+nextSeq(3, "b"), "11")

	want("reword", runScript(t, w, script.UpdateMarker, second.String()+"@0", first.String()), "1")
	want("reworded", valueIn(0, script.MarkerKey)+valueIn(3, script.MarkerKey), first.String()+"@0"+first.String()+"@3")
	runScript(t, w, script.UpdateMarker, first.String()+"@0", second.String())
	want("quarantine with a claim", runScript(t, w, script.Quarantine, second.String()+"@0", "", quarantined.String()),
		"1")
	want("disclaim", runScript(t, w, script.DropClaim, quarantined.String(), quarantined.WithoutClaim().String()), "1")
	want("nothing is claimed", runScript(t, w, script.ReadSequences, "b"), "[b@3 0 b@0 0]")
	want("remark without a claim", runScript(t, w, script.Admit, "", quarantined.WithoutClaim().String(),
		first.String(), 5, marker.ProofIntact, "b"), "-1")

	want("ages", runScript(t, w, script.PublishSeqs, 60000, "z@0", 5, "z@1", 7), "1")
	want("older ones", runScript(t, w, script.PublishSeqs, 60000, "z@0", 4), "1")
	want("are kept", runScript(t, w, script.ReadPublishedSeqs, "z@0", "z@1", "z@2"), "[5 7 0]")
}

// TestFill checks, on a real Redis, that script.Fill puts, copies and drops values, and sets their
// expiry.
func TestFill(t *testing.T) {
	w := startRedis(t)
	c := w.Client(0)
	c.Set(t.Context(), script.RecordKey, "r", 0)
	serverTime, err := c.Time(t.Context()).Result()
	if err != nil {
		t.Fatal(err)
	}
	expiry := func(timeLeft time.Duration) string {
		return marker.FormatMillis(time.Duration(serverTime.Add(timeLeft).UnixNano()))
	}
	for key, left := range map[string]time.Duration{"longer": time.Hour, "shorter": time.Minute, "other": time.Hour,
		"gone": time.Hour, "changed": time.Hour} {
		c.Set(t.Context(), key, "v", left)
	}
	if got := runScript(t, w, script.Fill, "r", 0,
		"longer", "copy", "v", expiry(30*time.Minute), "shorter", "copy", "v", expiry(30*time.Minute), "other", "put", "w",
		expiry(30*time.Minute),
		"gone", "drop", "v", "-1", "changed", "drop", "w", "-1", "new", "put", "n", "-1", "over", "put", "n",
		expiry(-time.Second)); got != "1" {
		t.Fatalf("got %s", got)
	}
	for key, want := range map[string]string{"longer": "v 1h0m0s", "shorter": "v 30m0s", "other": "w 30m0s",
		"gone": " -2ns", "changed": "v 1h0m0s", "new": "n -1ns", "over": " -2ns"} {
		got := fmt.Sprint(c.Get(t.Context(), key).Val(), " ", c.PTTL(t.Context(), key).Val().Round(time.Minute))
		if left := c.PTTL(t.Context(), key).Val(); left < 0 {
			got = fmt.Sprint(c.Get(t.Context(), key).Val(), " ", left)
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", key, got, want)
		}
	}
	if got := runScript(t, w, script.Fill, "another", 0, "k", "put", "v", "-1"); got != "-1" {
		t.Errorf("in another quarantine: got %s", got)
	}
}

// TestBoundOfClaimOfFormerEra checks that a quarantine record from a former era gets a bound,
// although its claim to have all data does not count. The claim stays in the record.
func TestBoundOfClaimOfFormerEra(t *testing.T) {
	tr := startRedis(t)
	v, err := tr.Examine(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	record := marker.Record{RunID: v.RunID, Nonce: "n", WrittenAt: 1, Claim: "c", ClaimAddress: "m", Reason: string(Restarted)}
	tr.Client(0).Set(t.Context(), script.RecordKey, record.String(), 0)
	if v, err = tr.Examine(t.Context()); err != nil {
		t.Fatal(err)
	}
	era := reconfig.Change{Names: []string{"m"}}.NextEra(reconfig.Era{})
	s := NewSet(Options{JoinedEra: &era, Logger: slog.New(slog.DiscardHandler)}, []Master{{Name: "m", Conn: tr}})
	s.maxTTLInUse.NoteNoRecords()
	s.maxTTLInUse.NoteRecorded(time.Minute)
	pause, err := s.Guard(0).quarantineStep(t.Context(), v)
	want := record.WithBound(time.Minute).String()
	if got := tr.Client(0).Get(t.Context(), script.RecordKey).Val(); pause != 0 || err != nil || got != want {
		t.Errorf("record %q, want %q (pause %v, error %v)", got, want, pause, err)
	}
}
