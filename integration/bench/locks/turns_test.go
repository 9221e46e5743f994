package locks

import (
	"math/rand/v2"
	"testing"
	"time"
)

func TestServiceOrder(t *testing.T) {
	at := func(client, sent, granted int) pair {
		return pair{client: client, sendTime: time.Duration(sent) * ms, grantTime: time.Duration(granted) * ms}
	}
	for name, c := range map[string]struct {
		pairs []pair
		want  serviceOrder
	}{
		"nothing": {nil, serviceOrder{}},
		"in turn": {[]pair{at(0, 0, 1), at(1, 10, 21), at(2, 20, 31)}, serviceOrder{grants: 3, maxTurnsWaited: 1, fewestGrants: 1, mostGrants: 1}},
		"a later one first": {
			[]pair{at(0, 0, 30), at(1, 11, 20), at(2, 20, 40)},
			serviceOrder{grants: 3, overtakenRequests: 1, maxTurnsWaited: 1, fewestGrants: 1, mostGrants: 1},
		},
		"later by less than the slack": {[]pair{at(0, 0, 30), at(1, 10, 20), at(2, 40, 41)},
			serviceOrder{grants: 3, maxTurnsWaited: 1, fewestGrants: 1, mostGrants: 1}},
		"one client again and again": {
			[]pair{at(0, 0, 1), at(1, 0, 70), at(0, 10, 11), at(0, 20, 21), at(0, 30, 31)},
			serviceOrder{grants: 5, overtakenRequests: 1, maxTurnsWaited: 4, fewestGrants: 0, mostGrants: 4},
		},
		"the warm-up counts for others only": {[]pair{at(0, -9, -8), at(1, -7, 2), at(2, 1, 3)},
			serviceOrder{grants: 1, maxTurnsWaited: 1, fewestGrants: 0, mostGrants: 1}},
	} {
		if got := serviceOrderOf(c.pairs, window{}, 3); got != c.want {
			t.Errorf("%s: %+v; want %+v", name, got, c.want)
		}
	}
}

// TestServiceOrderAgainstReference checks serviceOrderOf against a reference that counts pair by
// pair.
func TestServiceOrderAgainstReference(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	const clients = 4
	for range 300 {
		pairs := make([]pair, 1+random.IntN(60))
		for i := range pairs {
			sent := time.Duration(random.IntN(100)-20) * ms
			pairs[i] = pair{client: random.IntN(clients), sendTime: sent,
				grantTime: sent + time.Duration(random.IntN(40))*ms + time.Duration(i)}
		}
		if got, want := serviceOrderOf(pairs, window{}, clients), referenceOrder(pairs, clients); got != want {
			t.Fatalf("%+v: %+v; want %+v", pairs, got, want)
		}
	}
}

func referenceOrder(pairs []pair, clients int) serviceOrder {
	var t serviceOrder
	for _, p := range pairs {
		if p.sendTime < 0 {
			continue
		}
		t.grants++
		waited, overtaken := 0, false
		for _, other := range pairs {
			if other.grantTime > p.sendTime && other.grantTime < p.grantTime {
				waited++
			}
			if other.grantTime < p.grantTime && other.sendTime > p.sendTime+sendTolerance {
				overtaken = true
			}
		}
		t.maxTurnsWaited = max(t.maxTurnsWaited, waited)
		if overtaken {
			t.overtakenRequests++
		}
	}
	t.fewestGrants = len(pairs)
	for client := range clients {
		n := 0
		for _, p := range pairs {
			if p.client == client && p.sendTime >= 0 {
				n++
			}
		}
		t.fewestGrants, t.mostGrants = min(t.fewestGrants, n), max(t.mostGrants, n)
	}
	return t
}
