package messages

import (
	"math/rand/v2"
	"testing"
)

// TestEpochs connects and disconnects masters at random, while majorities accept messages one
// master after the other. It checks that no remaining subscription has missed a message that was
// published after the subscription had joined.
func TestEpochs(t *testing.T) {
	for _, masters := range []int{1, 2, 3, 4, 5} {
		majority := masters/2 + 1
		affected := 0
		for seed := range uint64(2000) {
			affected += runEpochs(t, rand.New(rand.NewPCG(seed, uint64(masters))), masters, majority)
		}
		if affected == 0 && masters > 1 {
			t.Errorf("%d masters: no subscription was notified", masters)
		}
	}
}

// runEpochs performs one run of TestEpochs. It returns the number of subscriptions that were
// removed because they may have missed a message.
func runEpochs(t *testing.T, random *rand.Rand, masters, majority int) (affectedCount int) {
	t.Helper()
	e := newEpochs(masters, masters-majority+1)
	subscriptions := map[*Subscription]bool{}
	type publication struct {
		remainingMasters     []int
		missingSubscriptions map[*Subscription]bool // subscriptions at the start that have not got the message
	}
	var publications []*publication
	for range 60 {
		i := random.IntN(masters)
		switch random.IntN(5) {
		case 0:
			if !e.connectedMasters[i] {
				e.masterConnected(i)
			}
		case 1:
			if e.connectedMasters[i] && random.IntN(2) == 0 {
				for _, m := range e.masterDisconnected(i) {
					delete(subscriptions, m)
					affectedCount++
				}
			}
		case 2:
			joinAndLeave(random, e, subscriptions)
		case 3:
			f := &publication{remainingMasters: random.Perm(masters)[:majority], missingSubscriptions: map[*Subscription]bool{}}
			for m := range subscriptions {
				f.missingSubscriptions[m] = true
			}
			publications = append(publications, f)
		case 4:
			if len(publications) == 0 {
				continue
			}
			f := publications[0]
			if e.connectedMasters[f.remainingMasters[0]] {
				clear(f.missingSubscriptions) // all subscriptions get it from this master
			}
			if f.remainingMasters = f.remainingMasters[1:]; len(f.remainingMasters) > 0 {
				continue
			}
			for m := range f.missingSubscriptions {
				if subscriptions[m] {
					t.Fatalf("a subscription has missed a message of %d masters", masters)
				}
			}
			publications = publications[1:]
		}
	}
	if len(e.set) > len(subscriptions)+1 {
		t.Fatalf("%d epochs of %d subscriptions", len(e.set), len(subscriptions))
	}
	return affectedCount
}

func joinAndLeave(random *rand.Rand, e *epochs, subscriptions map[*Subscription]bool) {
	if m := new(Subscription); e.join(m) {
		subscriptions[m] = true
	}
	for m := range subscriptions {
		if random.IntN(20) == 0 {
			e.leave(m)
			delete(subscriptions, m)
		}
	}
}
