package register

import (
	"testing"
	"time"
)

// TestHoldings checks the reported status, the copy of each master, and the known holder.
func TestHoldings(t *testing.T) {
	const u, n, s, o = CopyUnknown, CopyAbsent, CopySame, CopyDifferent
	for _, test := range []struct {
		name    string
		prepare func(b *fakeMasters, r *Register)
		want    Status
		copies  [5]CopyState
		holder  any
	}{
		{"nothing", func(*fakeMasters, *Register) {}, StatusFree, [5]CopyState{n, n, n, n, n}, nil},
		{"a lock of this proxy", func(b *fakeMasters, r *Register) { b.mustLockAs(r, "me", "ann") }, StatusHeld,
			[5]CopyState{s, s, s, s, s}, "ann"},
		{"a lock of another proxy", func(b *fakeMasters, _ *Register) { b.mustLockAs(b.proxy(), "me", "ann") }, StatusHeld,
			[5]CopyState{s, s, s, s, s}, nil},
		{"released", func(b *fakeMasters, r *Register) {
			b.mustLockAs(r, "me", "ann")
			b.noError(r.Unlock(b.Context(), "k", "me", nil))
		}, StatusFree, [5]CopyState{n, n, n, n, n}, nil},
		{"removed by ballot", func(b *fakeMasters, r *Register) {
			b.mustLockAs(r, "me", "ann")
			b.noError(b.proxy().Unlock(b.Context(), "k", "me", nil))
		}, StatusFree, [5]CopyState{n, n, n, n, n}, nil},
		{"removed elsewhere and taken there with an equal token", func(b *fakeMasters, r *Register) {
			b.mustLockAs(r, "me", "ann")
			other := b.proxy()
			b.noError(other.Unlock(b.Context(), "k", "me", nil))
			b.mustLockAs(other, "me", "bob")
		}, StatusHeld, [5]CopyState{s, s, s, s, s}, nil},
		{"taken anew by ballot", func(b *fakeMasters, r *Register) {
			b.mustLockAs(r, "me", "ann")
			b.noError(b.proxy().Unlock(b.Context(), "k", "me", nil))
			b.mustLockAs(r, "me", "bob")
		}, StatusHeld, [5]CopyState{s, s, s, s, s}, "bob"},
		{"replaced elsewhere", func(b *fakeMasters, r *Register) {
			b.mustLockAs(r, "me", "ann")
			_, err := b.proxy().Update(b.Context(), putChange("you"))
			b.noError(err)
		}, StatusHeld, [5]CopyState{s, s, s, s, s}, nil},
		{"a leftover", func(b *fakeMasters, _ *Register) { b.putPlainCell("x", "a", time.Minute, 0, 1) }, StatusSplit,
			[5]CopyState{s, s, n, n, n}, nil},
		{"a leftover beside a lock", func(b *fakeMasters, _ *Register) {
			b.putPlainCell("x", "a", time.Minute, 0, 1, 2)
			b.putPlainCell("x", "b", time.Minute, 3)
		}, StatusHeld, [5]CopyState{s, s, s, o, n}, nil},
		{"in the midst of a replacing", func(b *fakeMasters, r *Register) {
			b.mustLockAs(r, "me", "ann")
			b.setFaultOn("accept", requestLost, 1, 2, 3, 4)
			_, _ = b.proxy().Update(b.Context(), putChange("you"))
			b.faultOf = nil
		}, StatusSplit, [5]CopyState{s, o, o, o, o}, nil},
		{"what may have a majority", func(b *fakeMasters, _ *Register) {
			b.putPlainCell("x", "a", time.Minute, 0, 1)
			b.setFault(replyLost, 4)
		}, StatusUnclear, [5]CopyState{s, s, n, n, u}, nil},
		{"one is away", func(b *fakeMasters, r *Register) {
			b.mustLockAs(r, "me", "ann")
			b.setFault(replyLost, 4)
		}, StatusHeld, [5]CopyState{s, s, s, s, u}, "ann"},
		{"foreign", func(b *fakeMasters, _ *Register) { b.putForeignCell("x", 0, 1, 2) }, StatusHeld, [5]CopyState{s, s, s, n, n}, nil},
		{"a blocking copy", func(b *fakeMasters, _ *Register) { b.putBlockingCell("a", 4) }, StatusFree,
			[5]CopyState{n, n, n, n, o}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newFakeMasters(t, 5)
			r := b.proxy()
			test.prepare(b, r)
			b.rounds = nil
			holdings, err := r.Holdings(t.Context(), []string{"k"})
			b.noError(err)
			got := holdings[0]
			if got.Status != test.want || [5]CopyState(got.Copies) != test.copies ||
				got.Holder != test.holder || got.LeaseStart.IsZero() != (test.holder == nil) {
				t.Errorf("status %v, shares %v, holder %v since %v; want %v, %v, %v",
					got.Status, got.Copies, got.Holder, got.LeaseStart, test.want, test.copies, test.holder)
			}
			b.wantRounds("read") // Holdings runs no ballot
		})
	}
}

// TestHoldingsWithoutAQuorum checks that fewer masters than a majority decide nothing, but Holdings
// reports their cells. Without any reply, Holdings returns an error.
func TestHoldingsWithoutAQuorum(t *testing.T) {
	b := newFakeMasters(t, 5)
	r := b.proxy()
	b.mustLock(r, "me")
	b.setFault(voteUncounted, 2, 3, 4)
	holdings, err := r.Holdings(t.Context(), []string{"k"})
	b.noError(err)
	if got := holdings[0]; got.Status != StatusUnclear || got.Copies[1] != CopySame ||
		got.Copies[2] != CopyUnknown || got.Holder != nil {
		t.Errorf("%+v", got)
	}
	b.setFault(voteUncounted, 0, 1, 2, 3, 4)
	if _, err := r.Holdings(t.Context(), []string{"k"}); outcome(err) != "no quorum" {
		t.Errorf("%v", err)
	}
}

func (b *fakeMasters) mustLockAs(r *Register, token string, holder any) {
	b.Helper()
	request := takeOptions(token)
	request.Holder = holder
	_, err := r.Lock(b.Context(), []string{"k"}, request)
	b.noError(err)
}
