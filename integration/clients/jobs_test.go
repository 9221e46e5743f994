//go:build integration

package clients

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// jobKeys returns a function that returns the keys that sidekiq-unique-jobs stores for a lock, with
// a prefix.
func jobKeys(prefix string) func(key string) []string {
	return func(key string) []string {
		return []string{prefix + ":" + key, prefix + ":" + key + ":LOCKED", prefix + ":" + key + ":INFO"}
	}
}

// TestJobs tests sidekiq-unique-jobs with one tag for all keys of a lock and the list of locks.
func TestJobs(t *testing.T) {
	redistest.SkipShort(t)
	compareLocksOn(t, startJobService, []dialect{
		{name: "unique-jobs", storedKeys: jobKeys("{uniquejobs:digests}"), soleCheck: checkUniqueJobs},
		{name: "unique-jobs-old", storedKeys: jobKeys("{uniquejobs:digests}"), soleCheck: checkUniqueJobs},
		{name: "unique-jobs-ending", storedKeys: jobKeys("{uniquejobs:expiring_digests}"), soleCheck: checkExpiringJobs},
		{name: "unique-jobs-log", storedKeys: jobKeys("{uniquejobs}"), soleCheck: checkLoggedJobs},
	}, rubyLocks(t))
}

// startJobService starts a proxy that keeps all lock keys with the same tag in one cell.
func startJobService(t *testing.T, command []string) *lockService {
	t.Helper()
	return startProxyService(t, command, "--lock-keys", "*uniquejobs*", "--lock-tags", "*")
}

// checkUniqueJobs tests locks whose keys have the same tag as the list of all locks, without a log.
func checkUniqueJobs(s *lockService, d dialect) {
	s.t.Helper()
	s.checkOneJob(d, "life")
	kit.Must(s.t, s.killMinority())
	s.checkOneJob(d, "killed")
	kit.Must(s.t, s.restartMinority())
	s.checkOneJob(d, "back")
	s.checkSharedLock(d, d.key("share"))
	s.checkWaitingJob(d, d.key("wait"))
	s.checkExpiredJob(d, d.key("end"))
	s.run(s.b, d, "reap", d.key("end"))
	s.run(s.b, d, "show", d.key("end"))
}

// checkOneJob tests that only one job runs at a time. The holder can take its lock again, and
// another job is refused.
func (s *lockService) checkOneJob(d dialect, name string) {
	s.t.Helper()
	key, ms := d.key(name), kit.Millis(longLease)
	s.wantJob(s.a, d, "take", key, ms)
	s.wantJobOnMasters(d, key)
	s.wantRemaining(d, key, 0, longLease)
	s.wantNoJob(s.b, d, "take", key, ms)
	s.run(s.b, d, "show", key)
	s.wantJob(s.a, d, "take", key, ms)
	s.run(s.b, d, "release", key)
	s.wantNoJob(s.b, d, "abandon", key)
	s.wantJob(s.a, d, "release", key)
	s.run(s.b, d, "show", key)
	s.wantJob(s.b, d, "take", key, ms)
	s.run(s.a, d, "show", key)
	s.run(s.a, d, "delete", key)
	s.run(s.a, d, "delete", key)
	s.run(s.a, d, "show", key)
}

// checkSharedLock tests that two jobs can hold the lock at the same time.
func (s *lockService) checkSharedLock(d dialect, key string) {
	s.t.Helper()
	for _, client := range []*driver{s.a, s.b} {
		s.wantJob(client, d, "take", key, kit.Millis(longLease), "2")
		s.run(client, d, "show", key)
	}
	for _, client := range []*driver{s.a, s.b} {
		s.wantJob(client, d, "release", key, "2")
		s.run(client, d, "show", key)
	}
	s.run(s.b, d, "delete", key)
}

// checkWaitingJob tests that a job waits until another job releases the lock. A job gives up when
// its waiting time ends.
func (s *lockService) checkWaitingJob(d dialect, key string) {
	s.t.Helper()
	ms := kit.Millis(longLease)
	s.run(s.b, d, "prime", key+":alone", ms)
	s.wantNoJob(s.b, d, "wait", key+":alone", ms, "1")
	s.run(s.b, d, "delete", key+":alone")
	s.wantJob(s.a, d, "take", key, ms, "2")
	s.run(s.b, d, "prime", key, ms, "2")
	kit.Must(s.t, s.b.send(d.name, "wait", key, ms, "20", "2"))
	time.Sleep(shortestLease) // by now the job waits; if not, the reply is the same
	s.run(s.a, d, "release", key, "2")
	reply, err := s.b.awaitReply()
	kit.Must(s.t, err)
	s.note("b: waited for %s: %s", key, reply)
	if reply != `"job-of-b"` {
		s.t.Errorf("%s: b waited for %s: %s", d.name, key, reply)
	}
	s.run(s.a, d, "show", key)
	s.run(s.b, d, "delete", key)
}

// checkExpiredJob tests that another job can take a lock whose lease has expired. After that, the
// first job is refused.
func (s *lockService) checkExpiredJob(d dialect, key string) {
	s.t.Helper()
	s.wantJob(s.a, d, "take", key, kit.Millis(shortestLease))
	time.Sleep(coarseLease) // the lease expires
	s.run(s.a, d, "show", key)
	s.run(s.a, d, "release", key)
	s.wantJob(s.b, d, "take", key, kit.Millis(longLease))
	s.wantNoJob(s.a, d, "take", key, kit.Millis(longLease))
}

// checkExpiringJobs tests locks that no job releases, so they only expire. The library keeps a
// separate list of these locks.
func checkExpiringJobs(s *lockService, d dialect) {
	s.t.Helper()
	key := d.key("life")
	s.wantJob(s.a, d, "take", key, kit.Millis(longLease), "1", "until_expired")
	s.wantNoJob(s.b, d, "take", key, kit.Millis(longLease), "1", "until_expired")
	s.run(s.b, d, "show", key)
	s.wantRemaining(d, key, 0, longLease)
	key = d.key("end")
	s.wantJob(s.a, d, "take", key, kit.Millis(shortestLease), "1", "until_expired")
	time.Sleep(coarseLease) // the lease expires
	s.wantJob(s.b, d, "take", key, kit.Millis(longLease), "1", "until_expired")
	s.run(s.a, d, "show", key)
}

// checkLoggedJobs tests locks whose keys have the same tag as all data that the library shares
// between locks. The library logs and publishes each step.
func checkLoggedJobs(s *lockService, d dialect) {
	s.t.Helper()
	listener, err := redistest.Dial(s.dataServer.Addr(), kit.WaitLimit)
	kit.Must(s.t, err)
	defer listener.Close()
	kit.Do(s.t, listener, "SUBSCRIBE", "{uniquejobs}:changelog")
	checkUniqueJobs(s, d)
	kit.Do(s.t, s.reader, "PUBLISH", "{uniquejobs}:changelog", `{"message": "the end"}`)
	for message := ""; message != "the end"; {
		received, err := listener.Receive()
		kit.Must(s.t, err)
		var entry struct{ Job, Message string }
		kit.Must(s.t, json.Unmarshal(fmt.Append(nil, received.([]any)[2]), &entry))
		s.note("heard: %v", entry)
		message = entry.Message
	}
}

// wantJob fails the test unless the reply shows that the client's job has or had the lock.
func (s *lockService) wantJob(client *driver, d dialect, operation, key string, args ...string) {
	s.t.Helper()
	if got, want := s.run(client, d, operation, key, args...), fmt.Sprintf("%q", "job-of-"+client.name); got != want {
		s.t.Errorf("%s: %s %s %s: got %s, want %s", d.name, client.name, operation, key, got, want)
	}
}

// wantNoJob fails the test unless the reply is nil.
func (s *lockService) wantNoJob(client *driver, d dialect, operation, key string, args ...string) {
	s.t.Helper()
	if got := s.run(client, d, operation, key, args...); got != "nil" {
		s.t.Errorf("%s: %s %s %s: got %s, want nil", d.name, client.name, operation, key, got)
	}
}

// wantJobOnMasters fails the test unless a majority of the masters have the cell of the lock's tag,
// whose key is the tag itself. The upstream must not have the lock's first key.
func (s *lockService) wantJobOnMasters(d dialect, key string) {
	s.t.Helper()
	if s.masters == nil {
		return
	}
	kit.Must(s.t, kit.CheckAbsent(s.dataServer, d.keyNames(key)[0]))
	tag, _, _ := strings.Cut(strings.TrimPrefix(d.keyNames(key)[0], "{"), "}")
	kit.AwaitShortly(s.t, func() error { return checkMajority(s.masters, tag) })
}

// TestJobsOfSeveralTags runs scripts of sidekiq-unique-jobs that change keys without a common tag.
// Either the keys have the default names, or the log has a different tag. The proxy refuses the
// scripts with an error that names two keys, and changes no key.
func TestJobsOfSeveralTags(t *testing.T) {
	redistest.SkipShort(t)
	proxySide := startJobService(t, rubyLocks(t))
	const format = "Redis::CommandError: ERR lock keys '%s' and '%s' cannot be changed together: one command can take, extend or remove several lock keys, but not change them otherwise; give them the same hash tag (lock-tags)"
	for name, keys := range map[string][2]string{
		"unique-jobs-plain":  {"uniquejobs:lock:unique-jobs-plain:life", "uniquejobs:lock:unique-jobs-plain:life:LOCKED"},
		"unique-jobs-logged": {"{uniquejobs:digests}:lock:unique-jobs-logged:life", "uniquejobs:changelog"},
	} {
		d := dialect{name: name}
		key := d.key("life")
		before := proxySide.run(proxySide.b, d, "show", key)
		if got, want := proxySide.run(proxySide.a, d, "take", key, kit.Millis(longLease)),
			fmt.Sprintf(format, keys[0], keys[1]); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
		if after := proxySide.run(proxySide.b, d, "show", key); after != before {
			t.Errorf("%s: there was %s, and is %s", name, before, after)
		}
	}
}
