package messages

import (
	"math/rand/v2"
	"testing"
)

// TestEpochs: masters connect and disconnect at random, while majorities accept messages one master
// after the other. No remaining member has missed a message that began after it joined: one of the
// accepting masters was connected at that time.
func TestEpochs(t *testing.T) {
	for _, masters := range []int{1, 2, 3, 4, 5} {
		majority := masters/2 + 1
		missed := 0
		for seed := range uint64(2000) {
			missed += epochsUnder(t, rand.New(rand.NewPCG(seed, uint64(masters))), masters, majority)
		}
		if missed == 0 && masters > 1 {
			t.Errorf("%d masters: no member was lost", masters)
		}
	}
}

// epochsUnder is one run of TestEpochs. It returns how many members were notified that they may
// miss a message.
func epochsUnder(t *testing.T, random *rand.Rand, masters, majority int) (lost int) {
	t.Helper()
	e := newEpochs(masters, masters-majority+1)
	members := map[*Subscription]bool{}
	type flight struct {
		left []int
		owed map[*Subscription]bool // members at the start that have not got it
	}
	var flights []*flight
	for range 60 {
		i := random.IntN(masters)
		switch random.IntN(5) {
		case 0:
			if !e.heard[i] {
				e.masterConnected(i)
			}
		case 1:
			if e.heard[i] && random.IntN(2) == 0 {
				for _, m := range e.masterDisconnected(i) {
					delete(members, m)
					lost++
				}
			}
		case 2:
			comeAndGo(random, e, members)
		case 3:
			f := &flight{left: random.Perm(masters)[:majority], owed: map[*Subscription]bool{}}
			for m := range members {
				f.owed[m] = true
			}
			flights = append(flights, f)
		case 4:
			if len(flights) == 0 {
				continue
			}
			f := flights[0]
			if e.heard[f.left[0]] {
				clear(f.owed) // all members have it
			}
			if f.left = f.left[1:]; len(f.left) > 0 {
				continue
			}
			for m := range f.owed {
				if members[m] {
					t.Fatalf("a member has missed a message of %d masters", masters)
				}
			}
			flights = flights[1:]
		}
	}
	if len(e.all) > len(members)+1 {
		t.Fatalf("%d epochs of %d members", len(e.all), len(members))
	}
	return lost
}

func comeAndGo(random *rand.Rand, e *epochs, members map[*Subscription]bool) {
	if m := new(Subscription); e.join(m) {
		members[m] = true
	}
	for m := range members {
		if random.IntN(20) == 0 {
			e.leave(m)
			delete(members, m)
		}
	}
}
