package quorum

import (
	"testing"
	"time"

	"github.com/hashicorp/go-multierror"
)

// TestJudge is the whole of what is decided about a master, by what it tells and what
// was known of it.
func TestJudge(t *testing.T) {
	mark := func(runID, nonce string, durable bool) string {
		return marker{runID: runID, replID: "r", nonce: nonce, durable: durable, address: "m"}.String()
	}
	rec := func(runID string, why reason) string {
		return record{runID: runID, nonce: "n", since: 1, reason: why}.String()
	}
	for _, c := range []struct {
		name string
		v    vitals
		past memory
		want verdictOn
		why  reason
	}{
		{"marked, in its first life", vitals{marker: mark("1", "a", false)}, memory{}, onTrust, ""},
		{"marked by another proxy since", vitals{marker: mark("1", "b", false)}, memory{marker: mark("1", "a", false)}, onTrust, ""},
		{"marked, and its clock stepped", vitals{marker: mark("1", "a", false)}, memory{stepped: true}, onCondemn, reasonClock},
		{"marked, and was a replica since", vitals{replID: "x", marker: mark("1", "a", false)}, memory{}, onCondemn, reasonReplicated},
		{"marked, and evicted since", vitals{evicted: 1, marker: mark("1", "a", false)}, memory{}, onCondemn, reasonEvicted},
		{"restarted with a marker", vitals{runID: "2", marker: mark("1", "a", false)}, memory{}, onCondemn, reasonRestarted},
		{"restarted, durable now only", vitals{runID: "2", appendfsync: "always", marker: mark("1", "a", false)}, memory{}, onCondemn, reasonRestarted},
		{"restarted, durable then only", vitals{runID: "2", appendfsync: "everysec", marker: mark("1", "a", true)}, memory{}, onCondemn, reasonRestarted},
		{"restarted, durable", vitals{runID: "2", appendfsync: "always", marker: mark("1", "a", true)}, memory{}, onRemark, ""},
		{"restarted, durable but for rewrites", vitals{runID: "2", appendfsync: "always", rewriteUnsynced: true, marker: mark("1", "a", true)}, memory{}, onCondemn, reasonRestarted},
		{"restarted, durable, as known", vitals{runID: "2", appendfsync: "always", marker: mark("1", "a", true)}, memory{marker: mark("1", "a", true)}, onRemark, ""},
		{"restarted, durable, from older data", vitals{runID: "2", appendfsync: "always", marker: mark("1", "a", true)}, memory{marker: mark("1", "b", true)}, onCondemn, reasonRestarted},
		{"restarted, durable, with another's data", vitals{runID: "2", appendfsync: "always", marker: marker{runID: "9", replID: "r", nonce: "a", durable: true, address: "other"}.String()}, memory{}, onCondemn, reasonReplicated},
		{"another's data", vitals{marker: marker{runID: "9", replID: "r", nonce: "a", address: "other"}.String()}, memory{marker: mark("1", "a", false)}, onCondemn, reasonReplicated},
		{"nothing, never seen", vitals{}, memory{}, onUnmarked, reasonRestarted},
		{"nothing, known in this life", vitals{}, memory{marker: mark("1", "a", false)}, onCondemn, reasonFlushed},
		{"nothing, known in an earlier life", vitals{runID: "2"}, memory{marker: mark("1", "a", false)}, onCondemn, reasonRestarted},
		{"in quarantine", vitals{record: rec("1", reasonFlushed)}, memory{}, onWait, reasonFlushed},
		{"in quarantine, and its clock stepped", vitals{record: rec("1", reasonFlushed)}, memory{stepped: true}, onCondemn, reasonClock},
		{"in quarantine in an earlier life", vitals{runID: "2", record: rec("1", reasonFlushed)}, memory{}, onCondemn, reasonRestarted},
		{"a marker that is none", vitals{marker: "x"}, memory{}, onCondemn, reasonRestarted},
		{"a record that is none", vitals{record: "x"}, memory{}, onCondemn, reasonRestarted},
		{"a server that does not tell its run_id", vitals{runID: untold, marker: mark(untold, "a", false)}, memory{}, onTrust, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.v.runID == "" {
				c.v.runID = "1"
			}
			if c.v.replID == "" {
				c.v.replID = "r"
			}
			c.past.name = "m"
			if got, why := judge(c.v, c.past); got != c.want || why != c.why {
				t.Errorf("got %d, %q, want %d, %q", got, why, c.want, c.why)
			}
		})
	}
}

// TestLostSince: only a restart, of a master that threw nothing away since, was as long
// ago as the master has been up.
func TestLostSince(t *testing.T) {
	v := vitals{uptime: 30 * time.Second, neverForgot: true, sighting: sighting{told: 100 * time.Second}}
	flushed := v
	flushed.neverForgot = false
	young := v
	young.uptime = 0
	for _, c := range []struct {
		name string
		v    vitals
		why  reason
		want time.Duration
	}{
		{"restarted", v, reasonRestarted, 71 * time.Second},
		{"restarted, and perhaps flushed since", flushed, reasonRestarted, 100 * time.Second},
		{"restarted just now", young, reasonRestarted, 100 * time.Second},
		{"flushed", v, reasonFlushed, 100 * time.Second},
		{"stepped", v, reasonClock, 100 * time.Second},
	} {
		if got := lostSince(c.v, c.why); got != c.want {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
	r := record{since: 71000}
	if got := leaseLeft(r, 80*time.Second, 20*time.Second); got != 11*time.Second+200*time.Millisecond+driftFixed {
		t.Errorf("left: %v", got)
	}
	if got := leaseLeft(r, time.Hour, 20*time.Second); got != 0 {
		t.Errorf("left long after: %v", got)
	}
}

func TestNeverForgot(t *testing.T) {
	for info, want := range map[string]bool{
		"# Commandstats\r\ncmdstat_set:calls=1,usec=2\r\n":         true,
		"cmdstat_set:calls=1\r\ncmdstat_flushall:calls=1\r\n":      false,
		"cmdstat_replicaof:calls=1\r\n":                            false,
		"cmdstat_set:calls=1\r\ncmdstat_swapdb:calls=1,usec=2\r\n": false,
		"":                         false, // it does not tell
		"# Commandstats\r\n":       false,
		"cmdstat_get:calls=1\r\nx": true,
	} {
		if got := neverForgot(info); got != want {
			t.Errorf("%q: got %v", info, got)
		}
	}
}

func TestNoQuorumTellsOfQuarantines(t *testing.T) {
	cause := func(master string, err error) error { return &MasterError{Master: master, Err: err} }
	in := func(left time.Duration) time.Time {
		if left == 0 {
			return time.Time{}
		}
		return time.Now().Add(left)
	}
	for _, c := range []struct {
		causes []error
		want   string
	}{
		{[]error{cause("a", errHung), cause("b", errLostReply)}, "1 of 3 masters answered, 2 needed: a: no answer in time; b: the reply was lost"},
		{[]error{cause("a", &QuarantineError{reasonRestarted, in(26500 * time.Millisecond)})}, "1 of 3 masters vote: 1 restarted without proof of its data, ready in 27 s"},
		{[]error{
			cause("a", &QuarantineError{reasonRestarted, in(2500 * time.Millisecond)}), cause("b", &QuarantineError{reasonClock, in(500 * time.Millisecond)}),
			cause("c", &QuarantineError{reasonRestarted, in(9500 * time.Millisecond)}), cause("d", errHung),
		}, "1 of 3 masters vote: 2 restarted without proof of their data, ready in 10 s; 1 its clock stepped, ready in 1 s; d: no answer in time"},
		{[]error{cause("a", &QuarantineError{reasonUnproven, in(0)})}, "1 of 3 masters vote: 1 is asked whether it still has its data"},
	} {
		err := &NoQuorumError{Masters: 3, Answered: 1, Causes: &multierror.Error{Errors: c.causes, ErrorFormat: joinCauses}}
		if err.Error() != c.want {
			t.Errorf("got  %q\nwant %q", err.Error(), c.want)
		}
	}
}

// FuzzMarker: whatever stands under the keys is read as what was written there, or not
// at all.
func FuzzMarker(f *testing.F) {
	f.Add(marker{runID: "1", replID: "2", nonce: "3", durable: true, evicted: 4, address: "/a b"}.String())
	f.Add(record{runID: "1", nonce: "2", since: 3, reason: reasonClock}.String())
	f.Add("1 2 3 1 04 x")
	f.Fuzz(func(t *testing.T, text string) {
		if m, ok := parseMarker(text); ok && m.String() != text {
			t.Errorf("marker %q was read as %q", text, m)
		}
		if r, ok := parseRecord(text); ok && r.String() != text {
			t.Errorf("record %q was read as %q", text, r)
		}
	})
}
