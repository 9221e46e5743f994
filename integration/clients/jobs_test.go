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

// jobKeys returns the keys of sidekiq-unique-jobs that exist as long as the lock, with a prefix.
func jobKeys(prefix string) func(key string) []string {
	return func(key string) []string {
		return []string{prefix + ":" + key, prefix + ":" + key + ":LOCKED", prefix + ":" + key + ":INFO"}
	}
}

// TestJobs tests sidekiq-unique-jobs with one tag for all keys of a lock and the list of locks.
func TestJobs(t *testing.T) {
	redistest.SkipShort(t)
	tryLocksOn(t, startForJobs, []dialect{
		{name: "unique-jobs", stored: jobKeys("{uniquejobs:digests}"), only: uniqueJobs},
		{name: "unique-jobs-old", stored: jobKeys("{uniquejobs:digests}"), only: uniqueJobs},
		{name: "unique-jobs-ending", stored: jobKeys("{uniquejobs:expiring_digests}"), only: jobsWithExpiry},
		{name: "unique-jobs-log", stored: jobKeys("{uniquejobs}"), only: loggedJobs},
	}, rubyLocks(t))
}

// startForJobs starts a proxy that keeps all lock keys with the same tag in one cell.
func startForJobs(t *testing.T, command []string) *side {
	t.Helper()
	return startProxy(t, command, "--lock-keys", "*uniquejobs*", "--lock-tags", "*")
}

// uniqueJobs tests locks whose keys have the same tag as the list of all locks, without a log.
func uniqueJobs(s *side, d dialect) {
	s.t.Helper()
	s.jobs(d, "life")
	kit.Must(s.t, s.killMinority())
	s.jobs(d, "killed")
	kit.Must(s.t, s.restartMinority())
	s.jobs(d, "back")
	s.jobsShare(d, d.key("share"))
	s.jobsWait(d, d.key("wait"))
	s.jobsEnd(d, d.key("end"))
	s.say(s.b, d, "reap", d.key("end"))
	s.say(s.b, d, "show", d.key("end"))
}

// jobs tests that only one job runs at a time. It can take its lock again, and yields to a holder.
func (s *side) jobs(d dialect, name string) {
	s.t.Helper()
	key, ms := d.key(name), kit.Millis(longLease)
	s.job(s.a, d, "take", key, ms)
	s.jobOnMasters(d, key)
	s.remaining(d, key, 0, longLease)
	s.noJob(s.b, d, "take", key, ms)
	s.say(s.b, d, "show", key)
	s.job(s.a, d, "take", key, ms)
	s.say(s.b, d, "release", key)
	s.noJob(s.b, d, "abandon", key)
	s.job(s.a, d, "release", key)
	s.say(s.b, d, "show", key)
	s.job(s.b, d, "take", key, ms)
	s.say(s.a, d, "show", key)
	s.say(s.a, d, "delete", key)
	s.say(s.a, d, "delete", key)
	s.say(s.a, d, "show", key)
}

// jobsShare tests that two jobs can hold the lock at the same time.
func (s *side) jobsShare(d dialect, key string) {
	s.t.Helper()
	for _, client := range []*driver{s.a, s.b} {
		s.job(client, d, "take", key, kit.Millis(longLease), "2")
		s.say(client, d, "show", key)
	}
	for _, client := range []*driver{s.a, s.b} {
		s.job(client, d, "release", key, "2")
		s.say(client, d, "show", key)
	}
	s.say(s.b, d, "delete", key)
}

// jobsWait tests that a job without a place waits until another job leaves one, or its time ends.
func (s *side) jobsWait(d dialect, key string) {
	s.t.Helper()
	ms := kit.Millis(longLease)
	s.say(s.b, d, "prime", key+":alone", ms)
	s.noJob(s.b, d, "wait", key+":alone", ms, "1")
	s.say(s.b, d, "delete", key+":alone")
	s.job(s.a, d, "take", key, ms, "2")
	s.say(s.b, d, "prime", key, ms, "2")
	kit.Must(s.t, s.b.send(d.name, "wait", key, ms, "20", "2"))
	time.Sleep(briefLease) // by now the job waits; if not, the reply is the same
	s.say(s.a, d, "release", key, "2")
	reply, err := s.b.answer()
	kit.Must(s.t, err)
	s.note("b: waited for %s: %s", key, reply)
	if reply != `"job-of-b"` {
		s.t.Errorf("%s: b waited for %s: %s", d.name, key, reply)
	}
	s.say(s.a, d, "show", key)
	s.say(s.b, d, "delete", key)
}

// jobsEnd tests that an expired lock is also removed from the list of all locks.
func (s *side) jobsEnd(d dialect, key string) {
	s.t.Helper()
	s.job(s.a, d, "take", key, kit.Millis(briefLease))
	time.Sleep(coarseLease) // the lease expires
	s.say(s.a, d, "show", key)
	s.say(s.a, d, "release", key)
	s.job(s.b, d, "take", key, kit.Millis(longLease))
	s.noJob(s.a, d, "take", key, kit.Millis(longLease))
}

// jobsWithExpiry tests jobs that only expire, and have a separate list of all locks.
func jobsWithExpiry(s *side, d dialect) {
	s.t.Helper()
	key := d.key("life")
	s.job(s.a, d, "take", key, kit.Millis(longLease), "1", "until_expired")
	s.noJob(s.b, d, "take", key, kit.Millis(longLease), "1", "until_expired")
	s.say(s.b, d, "show", key)
	s.remaining(d, key, 0, longLease)
	key = d.key("end")
	s.job(s.a, d, "take", key, kit.Millis(briefLease), "1", "until_expired")
	time.Sleep(coarseLease) // the lease expires
	s.job(s.b, d, "take", key, kit.Millis(longLease), "1", "until_expired")
	s.say(s.a, d, "show", key)
}

// loggedJobs tests locks whose keys have the same tag as all data that the library shares between
// locks. Each step is logged and published.
func loggedJobs(s *side, d dialect) {
	s.t.Helper()
	listener, err := redistest.Dial(s.data.Addr(), kit.Patience)
	kit.Must(s.t, err)
	defer listener.Close()
	kit.Do(s.t, listener, "SUBSCRIBE", "{uniquejobs}:changelog")
	uniqueJobs(s, d)
	kit.Do(s.t, s.raw, "PUBLISH", "{uniquejobs}:changelog", `{"message": "the end"}`)
	for message := ""; message != "the end"; {
		received, err := listener.Receive()
		kit.Must(s.t, err)
		var entry struct{ Job, Message string }
		kit.Must(s.t, json.Unmarshal(fmt.Append(nil, received.([]any)[2]), &entry))
		s.note("heard: %v", entry)
		message = entry.Message
	}
}

// job fails the test unless the reply shows that the client's job has or had the lock.
func (s *side) job(client *driver, d dialect, operation, key string, args ...string) {
	s.t.Helper()
	if got, want := s.say(client, d, operation, key, args...), fmt.Sprintf("%q", "job-of-"+client.name); got != want {
		s.t.Errorf("%s: %s %s %s: got %s, want %s", d.name, client.name, operation, key, got, want)
	}
}

// noJob fails the test unless the reply is nil.
func (s *side) noJob(client *driver, d dialect, operation, key string, args ...string) {
	s.t.Helper()
	if got := s.say(client, d, operation, key, args...); got != "nil" {
		s.t.Errorf("%s: %s %s %s: got %s, want nil", d.name, client.name, operation, key, got)
	}
}

// jobOnMasters fails the test unless a majority of the masters hold the lock's tag, and the
// upstream has nothing of the lock.
func (s *side) jobOnMasters(d dialect, key string) {
	s.t.Helper()
	if s.masters == nil {
		return
	}
	kit.Must(s.t, kit.Lacks(s.data, d.names(key)[0]))
	tag, _, _ := strings.Cut(strings.TrimPrefix(d.names(key)[0], "{"), "}")
	kit.Settles(s.t, func() error { return wantMajority(s.masters, tag) })
}

// TestJobsOfSeveralTags: with the default names of sidekiq-unique-jobs, and with a log with another
// tag, its scripts change keys without a common tag. The proxy refuses the scripts with an error
// that names two keys, and changes no key.
func TestJobsOfSeveralTags(t *testing.T) {
	redistest.SkipShort(t)
	proxied := startForJobs(t, rubyLocks(t))
	const format = "Redis::CommandError: ERR lock keys '%s' and '%s' cannot be changed together: one command can only take, extend or remove several lock keys; give them the same hash tag (lock-tags)"
	for name, two := range map[string][2]string{
		"unique-jobs-plain":  {"uniquejobs:lock:unique-jobs-plain:life", "uniquejobs:lock:unique-jobs-plain:life:LOCKED"},
		"unique-jobs-logged": {"{uniquejobs:digests}:lock:unique-jobs-logged:life", "uniquejobs:changelog"},
	} {
		d := dialect{name: name}
		key := d.key("life")
		before := proxied.say(proxied.b, d, "show", key)
		if got, want := proxied.say(proxied.a, d, "take", key, kit.Millis(longLease)),
			fmt.Sprintf(format, two[0], two[1]); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
		if after := proxied.say(proxied.b, d, "show", key); after != before {
			t.Errorf("%s: there was %s, and is %s", name, before, after)
		}
	}
}
