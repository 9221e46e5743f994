//go:build integration

package guard

import (
	"fmt"
	"regexp"
	"slices"
	"testing"
	"time"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

var (
	readyInErrorPattern = regexp.MustCompile(`^NOQUORUM 0 of 5 masters vote: 5 restarted without proof of their data, ready in ([0-9hms]+)`)
	readyInInfoPattern  = regexp.MustCompile(`state=quarantine,reason=restarted,ready_in_seconds=(\d+)`)
)

// timeRange is the range in which the time of an event lies. The test knows the time only from
// replies, which may come late on a busy machine.
type timeRange struct{ from, to time.Time }

// announcement tracks an announced wait in seconds. The proxy rounds the number up, so the number
// is exact only when it has just fallen by one.
type announcement struct {
	name         string
	firstSeconds int // the first number
	seconds      int
	requestedAt  time.Time     // when seconds was requested
	exactWait    time.Duration // the first exact announcement
	exactAt      timeRange     // when the number fell to exactWait; zero: not yet
}

// recordAnnouncement records a number of seconds that the proxy announced.
func (a *announcement) recordAnnouncement(seconds int, sent, now time.Time) {
	if a.firstSeconds == 0 {
		a.firstSeconds = seconds
	}
	if a.exactAt.to.IsZero() && seconds == a.seconds-1 {
		a.exactWait, a.exactAt = time.Duration(seconds)*time.Second, timeRange{a.requestedAt, now}
	}
	a.seconds, a.requestedAt = seconds, sent
}

// check compares the announcement with the time at which the wait ended.
func (a *announcement) check(t *testing.T, endRange timeRange) {
	t.Helper()
	if a.exactAt.to.IsZero() {
		t.Errorf("%s announced no wait that went down", a.name)
		return
	}
	shortest, longest := endRange.from.Sub(a.exactAt.to), endRange.to.Sub(a.exactAt.from)
	deviation := func(measured time.Duration) float64 {
		return 100 * float64(measured-a.exactWait) / float64(a.exactWait)
	}
	t.Logf("%s: at first %d s; announced %v, measured %v to %v: %+.1f to %+.1f %%", a.name, a.firstSeconds, a.exactWait,
		shortest.Round(time.Millisecond), longest.Round(time.Millisecond), deviation(shortest), deviation(longest))
	if deviation(longest) < -5 || deviation(shortest) > 5 {
		t.Errorf("%s: the wait ended %+.1f to %+.1f %% off what was announced", a.name, deviation(shortest), deviation(longest))
	}
}

// TestGuardWaitAccuracy restarts all masters without their data at the same moment. Then locks
// are granted again without an operator. The wait is as long as the error and PROXY INFO announced,
// with a deviation of at most 5 %. It does not end before the earlier lock has expired.
func TestGuardWaitAccuracy(t *testing.T) {
	redistest.SkipShort(t)
	const ttl = 12 * time.Second
	f := kit.StartGuardedFleet(t, true, 2)
	client := kit.Connect(t, f.Proxies[0])
	sent := time.Now()
	validity := kit.WantGrant(t, client, "LOCK", "k", "t", "PX", kit.Millis(ttl))
	for _, master := range f.Masters {
		kit.Must(t, master.Kill())
	}
	for _, master := range f.Masters {
		kit.Must(t, master.Restart())
	}
	startedAt := time.Now()
	inError, inInfo := &announcement{name: "NOQUORUM"}, &announcement{name: "PROXY INFO"}
	ended := awaitGrant(t, f, client, inError, inInfo, ttl+kit.WaitLimit)
	t.Logf("locks of %v: granted again %v after the restart, %v after the grant before", ttl,
		ended.to.Sub(startedAt).Round(time.Millisecond), ended.to.Sub(sent).Round(time.Millisecond))
	inError.check(t, ended)
	inInfo.check(t, ended)
	if ended.to.Before(sent.Add(validity)) {
		t.Errorf("DOUBLE GRANT: %v after the first", ended.to.Sub(sent))
	}
	f.WantVoting(t, len(f.Masters))
}

// awaitGrant requests the lock until it is granted, and records the announcements. It returns the
// range of times in which the lock became available.
func awaitGrant(t *testing.T, f *kit.Fleet, client *redistest.Client, errorAnnouncement, infoAnnouncement *announcement, limit time.Duration) timeRange {
	t.Helper()
	lastRefusal := time.Now() // when the last refused LOCK was sent
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		sent := time.Now()
		reply := kit.Do(t, client, "LOCK", "k", "u", "PX", "1000")
		now := time.Now()
		if _, granted := reply.(int64); granted {
			return timeRange{lastRefusal, now}
		}
		lastRefusal = sent
		if match := readyInErrorPattern.FindStringSubmatch(fmt.Sprint(reply)); match != nil {
			errorAnnouncement.recordAnnouncement(parseSeconds(t, match[1]), sent, now)
		}
		// The lock becomes available when the third of the five masters votes, so the median
		// counts.
		var waits []int
		for _, match := range readyInInfoPattern.FindAllStringSubmatch(fmt.Sprint(kit.Do(t, client, "PROXY", "INFO")), -1) {
			waits = append(waits, kit.ParseNumber(t, match[1]))
		}
		if len(waits) == len(f.Masters) {
			slices.Sort(waits)
			infoAnnouncement.recordAnnouncement(waits[len(waits)/2], sent, time.Now())
		}
	}
	t.Fatal("there is no lock any more")
	return timeRange{}
}

// parseSeconds reads a duration such as 33s or 1m5s.
func parseSeconds(t *testing.T, text string) int {
	t.Helper()
	d, err := time.ParseDuration(text)
	kit.Must(t, err)
	return int(d / time.Second)
}
