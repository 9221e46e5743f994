package keepalive

import (
	"context"
	"errors"
	"testing"
	"time"

	"redlock-proxy/quorum"
)

// termAt returns the term of a lock of 3 s that was granted at a time.
func termAt(start time.Time, maxHold time.Duration) Term {
	return Term{TTL: 3 * time.Second, LeaseStart: start, ValidUntil: start.Add(2900 * time.Millisecond), MaxHold: maxHold}
}

// TestScheduleDrift checks that late renewals do not move later ones, and that no renewal is
// due earlier than its third of the TTL.
func TestScheduleDrift(t *testing.T) {
	start := time.Now()
	s := newSchedule(termAt(start, 0))
	for n := 1; n <= 100; n++ {
		if want := start.Add(time.Duration(n) * time.Second); !s.dueTime().Equal(want) {
			t.Fatalf("renewal %d is due after %v", n, s.dueTime().Sub(start))
		}
		late := s.dueTime().Add(time.Duration(n%7) * 100 * time.Millisecond)
		if n%10 == 0 {
			s.recordFailure(late, NoQuorum)
		}
		s.recordRenewal(late, s.leaseAt(late), late.Add(2900*time.Millisecond), false)
	}
}

// TestScheduleWithMaxHold checks that the last lease ends exactly with MAXHOLD.
func TestScheduleWithMaxHold(t *testing.T) {
	for _, maxHold := range []time.Duration{3 * time.Second, 3001 * time.Millisecond, 7500 * time.Millisecond, time.Minute} {
		start := time.Now()
		s := newSchedule(termAt(start, maxHold))
		for range 100 {
			if s.isLast() {
				break
			}
			now := s.dueTime().Add(5 * time.Millisecond)
			ttl := s.leaseAt(now)
			if end := now.Add(ttl); end.After(start.Add(maxHold + time.Millisecond)) {
				t.Fatalf("%v: a lease ends after %v", maxHold, end.Sub(start))
			}
			s.recordRenewal(now, ttl, now.Add(ttl*99/100), false)
		}
		if !s.isLast() || !s.leaseExpiry.Equal(start.Add(maxHold)) {
			t.Errorf("%v: the last lease ends after %v", maxHold, s.leaseExpiry.Sub(start))
		}
		if reason, isLost := s.lossAt(s.dueTime()); !isLost || reason != MaxHold {
			t.Errorf("%v: lost %v because of %v", maxHold, isLost, reason)
		}
	}
}

// TestScheduleRetries checks that retries end with the validity, and that a lock without a failed
// renewal is not lost.
func TestScheduleRetries(t *testing.T) {
	start := time.Now()
	s := newSchedule(termAt(start, 0))
	if _, isLost := s.lossAt(start.Add(time.Hour)); isLost {
		t.Error("given up without a try")
	}
	now, tries := s.dueTime(), 0
	for ; now.Before(s.ValidUntil); tries++ {
		now = s.recordFailure(now, Contended)
	}
	if reason, isLost := s.lossAt(now); tries != 19 || !now.Equal(s.ValidUntil) || !isLost || reason != Contended {
		t.Errorf("after %d tries in %v: %v, %v", tries, now.Sub(start), isLost, reason)
	}
	s.recordRenewal(now, s.TTL, now.Add(s.TTL), false)
	if _, isLost := s.lossAt(now.Add(time.Second)); isLost {
		t.Error("lost after a renewal")
	}
}

// TestReasons checks the reason for each error of Extend.
func TestReasons(t *testing.T) {
	moving := &quorum.WrongLocationError{Current: quorum.Location{Place: 3}}
	for _, test := range []struct {
		err   error
		text  string
		final bool
	}{
		{quorum.ErrNotHeld, "not_held", true},
		{&quorum.NoQuorumError{}, "no_quorum", false},
		{errTooLate, "no_quorum", false},
		{quorum.ErrContended, "contended", false},
		{&quorum.WrongLocationError{}, "moved", true},
		{moving, "moved", !moving.Current.Moves()},
		{context.Canceled, "failed", false},
		{errors.New("other"), "failed", false},
	} {
		if reason, final := reasonOf(test.err); reason.String() != test.text || final != test.final {
			t.Errorf("%v: %v, %v", test.err, reason, final)
		}
	}
	if all := Reasons(); len(all) != int(reasonCount) || all[Failed].String() != "failed" {
		t.Errorf("%v", all)
	}
}
