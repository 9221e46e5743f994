package messages

import (
	"math/rand/v2"
	"testing"
)

// TestEpochs: masters are heard and lost at random, while messages are taken by majorities one
// master after the other. Nobody who is still a member has missed one that began after it came: one
// of the masters that took it was heard then.
func TestEpochs(t *testing.T) {
	for _, masters := range []int{1, 2, 3, 4, 5} {
		majority := masters/2 + 1
		missed := 0
		for seed := range uint64(2000) {
			missed += epochsUnder(t, rand.New(rand.NewPCG(seed, uint64(masters))), masters, majority)
		}
		if missed == 0 && masters > 1 {
			t.Errorf("%d masters: nobody was lost", masters)
		}
	}
}

// epochsUnder is one such run. It gives how many were told that they may miss something.
func epochsUnder(t *testing.T, random *rand.Rand, masters, majority int) (lost int) {
	t.Helper()
	e := newEpochs(masters, masters-majority+1)
	members := map[*Membership]bool{}
	type flight struct {
		left []int
		owed map[*Membership]bool // members when it began, who have not got it
	}
	var flights []*flight
	for range 60 {
		i := random.IntN(masters)
		switch random.IntN(5) {
		case 0:
			if !e.heard[i] {
				e.begins(i)
			}
		case 1:
			if e.heard[i] && random.IntN(2) == 0 {
				for _, m := range e.ends(i) {
					delete(members, m)
					lost++
				}
			}
		case 2:
			comeAndGo(random, e, members)
		case 3:
			f := &flight{left: random.Perm(masters)[:majority], owed: map[*Membership]bool{}}
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
				clear(f.owed) // all who are here have it
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

// comeAndGo has one come, and some go.
func comeAndGo(random *rand.Rand, e *epochs, members map[*Membership]bool) {
	if m := new(Membership); e.join(m) {
		members[m] = true
	}
	for m := range members {
		if random.IntN(20) == 0 {
			e.leave(m)
			delete(members, m)
		}
	}
}
