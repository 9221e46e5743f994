package quorum

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"redlock-proxy/quorum/cell"
)

// TestTakeOfKeygroup loses the replies to a LOCK whose key shares its cell with another
// client's key. The next LOCK does not change the key of the other client.
func TestTakeOfKeygroup(t *testing.T) {
	runInBubble(t, 3, func(b *fixture) {
		opts := Options{Tagged: true}
		for i := range b.masters {
			opts.Masters = append(opts.Masters, fmt.Sprintf("redis://m%d:6379", i))
		}
		c, other := b.connect(opts), b.connect(opts)
		own, held := Key{Name: "lock:x"}, Key{Name: "{lock:x}:b", Tag: "lock:x"}
		_, err := other.Take(b.Context(),
			TakeRequest{Keys: []Key{held}, TakeOptions: TakeOptions{Tokens: []string{"B"}, TTL: time.Minute}})
		b.wantErr(err, nil)
		for _, m := range b.masters {
			m.change(func(m *fakeMaster) {
				m.errorFor = func(do cell.Op) error {
					_, accepts := do.(cell.Accept)
					m.losesReply, m.refuses = m.losesReply || accepts, m.refuses || accepts
					return nil
				}
			})
		}
		if _, err := c.Take(b.Context(), TakeRequest{Keys: []Key{own},
			TakeOptions: TakeOptions{Tokens: []string{"A"}, TTL: time.Minute}}); err == nil || c.RemovalsPending() == 0 {
			b.Fatalf("the first try: %v, %d removals pending", err, c.RemovalsPending())
		}
		for _, m := range b.masters {
			m.change(func(m *fakeMaster) { m.errorFor, m.refuses = nil, false })
		}
		for !c.HasQuorum() {
			time.Sleep(time.Millisecond)
		}
		_, err = c.Take(b.Context(), TakeRequest{Keys: []Key{own}, TakeOptions: TakeOptions{Tokens: []string{"A2"}, TTL: time.Minute}})
		b.wantErr(err, nil)
		time.Sleep(time.Second)
		if snapshots, err := other.Read(b.Context(), []Key{held, own}); err != nil || snapshots[0].Value != "B" ||
			snapshots[1].Value != "A2" {
			b.Errorf("the keys hold %+v, %v", snapshots, err)
		}
	})
}

// TestExtendDuringPendingRemoval loses the replies to a SET NX, so that its removal is pending. If
// the same or another proxy then grants an EXTEND, the extended lock stays.
func TestExtendDuringPendingRemoval(t *testing.T) {
	for _, same := range []bool{true, false} {
		runInBubble(t, 3, func(b *fixture) {
			other := b.newCluster()
			extender := map[bool]*Cluster{true: b.cluster, false: other}[same]
			for i, m := range b.masters {
				if i < 2 {
					m.loseReply()
				}
				m.change(func(m *fakeMaster) {
					m.errorFor = func(do cell.Op) error {
						if _, removes := do.(cell.Remove); removes {
							return errors.New("cut off")
						}
						return nil
					}
				})
			}
			_, err := b.cluster.Take(b.Context(),
				TakeRequest{Keys: []Key{job}, TakeOptions: TakeOptions{Tokens: []string{"A"}, TTL: time.Minute}})
			if err == nil {
				b.Fatal("granted without an answer")
			}
			granted := false
			for range 100 {
				if _, err := extender.Extend(b.Context(), job, "A", time.Minute); err == nil {
					granted = true
					break
				}
				time.Sleep(time.Millisecond)
			}
			for _, m := range b.masters {
				m.change(func(m *fakeMaster) { m.errorFor = nil })
			}
			time.Sleep(3 * time.Second)
			_, err = other.Take(b.Context(),
				TakeRequest{Keys: []Key{job}, TakeOptions: TakeOptions{Tokens: []string{"B"}, TTL: time.Minute}})
			if held := errors.Is(err, ErrHeld); held != granted {
				b.Errorf("the same proxy %v: EXTEND granted %v, and a rival: %v", same, granted, err)
			}
			b.T.Logf("the same proxy %v: EXTEND granted %v", same, granted)
		})
	}
}
