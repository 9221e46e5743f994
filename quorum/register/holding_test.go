package register

import (
	"testing"
	"time"
)

// TestHoldings checks the reported value, the share of each master, and the known holder.
func TestHoldings(t *testing.T) {
	const u, n, s, o = ShareUnknown, ShareNone, ShareSame, ShareOther
	for _, test := range []struct {
		name    string
		prepare func(b *fakeMasters, r *Register)
		want    Status
		shares  [5]Share
		holder  any
	}{
		{"nothing", func(*fakeMasters, *Register) {}, StatusFree, [5]Share{n, n, n, n, n}, nil},
		{"a lock of this proxy", func(b *fakeMasters, r *Register) { b.lockAs(r, "me", "ann") }, StatusHeld,
			[5]Share{s, s, s, s, s}, "ann"},
		{"a lock of another proxy", func(b *fakeMasters, _ *Register) { b.lockAs(b.proxy(), "me", "ann") }, StatusHeld,
			[5]Share{s, s, s, s, s}, nil},
		{"released", func(b *fakeMasters, r *Register) {
			b.lockAs(r, "me", "ann")
			b.noError(r.Unlock(b.Context(), "k", "me", nil))
		}, StatusFree, [5]Share{n, n, n, n, n}, nil},
		{"removed by ballot", func(b *fakeMasters, r *Register) {
			b.lockAs(r, "me", "ann")
			b.noError(b.proxy().Unlock(b.Context(), "k", "me", nil))
		}, StatusFree, [5]Share{n, n, n, n, n}, nil},
		{"removed elsewhere and taken there with an equal token", func(b *fakeMasters, r *Register) {
			b.lockAs(r, "me", "ann")
			other := b.proxy()
			b.noError(other.Unlock(b.Context(), "k", "me", nil))
			b.lockAs(other, "me", "bob")
		}, StatusHeld, [5]Share{s, s, s, s, s}, nil},
		{"taken anew by ballot", func(b *fakeMasters, r *Register) {
			b.lockAs(r, "me", "ann")
			b.noError(b.proxy().Unlock(b.Context(), "k", "me", nil))
			b.lockAs(r, "me", "bob")
		}, StatusHeld, [5]Share{s, s, s, s, s}, "bob"},
		{"replaced elsewhere", func(b *fakeMasters, r *Register) {
			b.lockAs(r, "me", "ann")
			_, err := b.proxy().Update(b.Context(), put("you"))
			b.noError(err)
		}, StatusHeld, [5]Share{s, s, s, s, s}, nil},
		{"a leftover", func(b *fakeMasters, _ *Register) { b.plain("x", "a", time.Minute, 0, 1) }, StatusSplit,
			[5]Share{s, s, n, n, n}, nil},
		{"a leftover beside a lock", func(b *fakeMasters, _ *Register) {
			b.plain("x", "a", time.Minute, 0, 1, 2)
			b.plain("x", "b", time.Minute, 3)
		}, StatusHeld, [5]Share{s, s, s, o, n}, nil},
		{"in the midst of a replacing", func(b *fakeMasters, r *Register) {
			b.lockAs(r, "me", "ann")
			b.setFateOf("accept", unsent, 1, 2, 3, 4)
			_, _ = b.proxy().Update(b.Context(), put("you"))
			b.fate = nil
		}, StatusSplit, [5]Share{s, o, o, o, o}, nil},
		{"what may have a majority", func(b *fakeMasters, _ *Register) {
			b.plain("x", "a", time.Minute, 0, 1)
			b.setFate(lost, 4)
		}, StatusUnclear, [5]Share{s, s, n, n, u}, nil},
		{"one is away", func(b *fakeMasters, r *Register) {
			b.lockAs(r, "me", "ann")
			b.setFate(lost, 4)
		}, StatusHeld, [5]Share{s, s, s, s, u}, "ann"},
		{"foreign", func(b *fakeMasters, _ *Register) { b.foreign("x", 0, 1, 2) }, StatusHeld, [5]Share{s, s, s, n, n}, nil},
		{"a blocking copy", func(b *fakeMasters, _ *Register) { b.blocking("a", 4) }, StatusFree,
			[5]Share{n, n, n, n, o}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newFakeMasters(t, 5)
			r := b.proxy()
			test.prepare(b, r)
			b.rounds = nil
			found, err := r.Holdings(t.Context(), []string{"k"})
			b.noError(err)
			got := found[0]
			if got.Status != test.want || [5]Share(got.Shares) != test.shares ||
				got.Holder != test.holder || got.Since.IsZero() != (test.holder == nil) {
				t.Errorf("status %v, shares %v, holder %v since %v; want %v, %v, %v",
					got.Status, got.Shares, got.Holder, got.Since, test.want, test.shares, test.holder)
			}
			b.wantRounds("read") // Holdings changes nothing
		})
	}
}

// TestHoldingsWithoutAQuorum checks that fewer masters than a majority decide nothing, but their
// cells are reported. Without any reply, Holdings returns an error.
func TestHoldingsWithoutAQuorum(t *testing.T) {
	b := newFakeMasters(t, 5)
	r := b.proxy()
	b.lock(r, "me")
	b.setFate(uncounted, 2, 3, 4)
	found, err := r.Holdings(t.Context(), []string{"k"})
	b.noError(err)
	if got := found[0]; got.Status != StatusUnclear || got.Shares[1] != ShareSame ||
		got.Shares[2] != ShareUnknown || got.Holder != nil {
		t.Errorf("%+v", got)
	}
	b.setFate(uncounted, 0, 1, 2, 3, 4)
	if _, err := r.Holdings(t.Context(), []string{"k"}); outcome(err) != "no quorum" {
		t.Errorf("%v", err)
	}
}

func (b *fakeMasters) lockAs(r *Register, token string, holder any) {
	b.Helper()
	taken := terms(token)
	taken.Holder = holder
	_, err := r.Lock(b.Context(), []string{"k"}, taken)
	b.noError(err)
}
