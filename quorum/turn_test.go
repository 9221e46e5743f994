package quorum

import (
	"testing"
	"testing/synctest"
	"time"
)

// turn asks for the turn, and wants it or not.
func (b *bench) turn(c *Cluster, want bool) (end func()) {
	b.Helper()
	end, ok := c.Turn(b.Context(), job)
	if ok != want {
		b.Errorf("the turn: %v, want %v", ok, want)
	}
	return end
}

func TestTurn(t *testing.T) {
	inBubble(t, 5, func(b *bench) {
		elsewhere := b.newCluster()
		b.settles(elsewhere, time.Second)
		end := b.turn(b.cluster, true)
		b.turn(elsewhere, false)()
		b.turn(b.cluster, false) // nor is it this proxy's
		end()
		synctest.Wait()
		b.turn(elsewhere, true)
		b.turn(b.cluster, false)
		time.Sleep(turnLasts) // who died with it does not keep it
		b.turn(b.cluster, true)
	})
}

// Without the master that keeps the turns of a key there is another one, or none.
func TestTurnWithoutItsMaster(t *testing.T) {
	inBubble(t, 5, func(b *bench) {
		elsewhere := b.newCluster()
		b.settles(elsewhere, time.Second)
		keeper := b.masters[hash(job)%5]
		keeper.hang()
		start := time.Now()
		b.turn(b.cluster, true)() // as if there were none
		b.turn(elsewhere, true)()
		if took := time.Since(start); took != 2*DefaultMasterTimeout {
			b.Errorf("it took %v", took)
		}
		b.turn(b.cluster, true)
		b.turn(elsewhere, false)
		for _, m := range b.masters {
			m.hang()
		}
		time.Sleep(2 * time.Second)
		b.turn(b.cluster, true)()
	})
}
