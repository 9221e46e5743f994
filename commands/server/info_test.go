package server

import (
	"errors"
	"slices"
	"testing"
	"time"

	"redlock-proxy/quorum"
	"redlock-proxy/quorum/availability"
)

// TestInfoRedlock checks that INFO shows the remaining time of a quarantine only if the proxy knows
// it.
func TestInfoRedlock(t *testing.T) {
	now := time.Now()
	restarted := &quorum.QuarantineError{Cause: "restarted", ReadyAt: now.Add(29*time.Second + time.Second/2)}
	outnumbered := &quorum.QuarantineError{Cause: "proxies"}
	forged := &quorum.QuarantineError{Cause: "x,y\r\nredlock_masters_voting:9"}
	s := New(Options{Availability: func() availability.Inputs { return availability.Inputs{Masters: 5, VotingMasters: 1} },
		Masters: func() []quorum.MasterStatus {
			return []quorum.MasterStatus{
				{Name: "m0", Since: now, RoundTrip: 40 * time.Microsecond},
				{Name: "m1", Since: now, State: quorum.Quarantined, Quarantine: restarted},
				{Name: "m2", Since: now, State: quorum.Quarantined, Quarantine: outnumbered},
				{Name: "m3", Since: now, State: quorum.Down, Err: errors.New("connection refused")},
				{Name: "m4", Since: now, State: quorum.Quarantined, Quarantine: forged},
			}
		}})
	want := []string{
		"redlock_available:no", "redlock_unavailable_cause:1 of 5 masters vote, 3 needed",
		"redlock_masters:5", "redlock_masters_up:4", "redlock_masters_voting:1", "redlock_majority:3",
		"redlock_removals_pending:0", "redlock_kept_locks:0", "redlock_lock_renewals_total:0",
		"redlock_kept_locks_lost_total:0",
		"redlock_master0:address=m0,state=voting,round_trip_us=40,for_seconds=0",
		"redlock_master1:address=m1,state=quarantine,reason=restarted,ready_in_seconds=30,for_seconds=0",
		"redlock_master2:address=m2,state=quarantine,reason=proxies,for_seconds=0",
		"redlock_master3:address=m3,state=down,cause=connection refused,for_seconds=0",
		"redlock_master4:address=m4,state=quarantine,reason=x;y  redlock_masters_voting:9,for_seconds=0",
	}
	if got := s.infoRedlock(); !slices.Equal(got, want) {
		t.Errorf("got\n%q, want\n%q", got, want)
	}
}
