package register

import (
	"fmt"
	"math/big"
	"testing"
	"time"

	"redlock-proxy/quorum/cell"
)

// TestBlockingLeftovers checks when a blocking copy of the held incarnation is a leftover: when its
// master's vote can neither have chosen another value nor granted a longer lease.
func TestBlockingLeftovers(t *testing.T) {
	ids := cell.NumberedSource(big.NewInt(1))
	inc, ballot := ids.Attempt(), ids.Ballot(2)
	old := cell.Value{Present: true, Text: "old"}
	plain := func(left time.Duration) Reply {
		return reported(cell.Cell{Form: cell.Plain, Attempt: inc, Value: old}, left)
	}
	replaced := func(left time.Duration) Reply {
		return reported(cell.Cell{Form: cell.Register, Attempt: inc, Promised: ballot, Accepted: ballot,
			Value: cell.Value{Present: true, Text: "new"}.WithChange(old, ids.Change())}, left)
	}
	blocking := func(left time.Duration) Reply { return reported(cell.Cell{Form: cell.Blocking, Attempt: inc}, left) }
	undecided := reported(cell.Cell{Form: cell.Blocking, Attempt: cell.UndecidedAttempt}, time.Hour)
	absent, unread := reported(cell.Cell{}, cell.NoExpiry), Reply{State: Unknown}
	const short = 10 * time.Second
	for _, test := range []struct {
		name    string
		replies []Reply
		want    string // the masters with leftovers
	}{
		{"all have the same lease", []Reply{plain(short), plain(short), blocking(short), plain(short), absent}, "[2]"},
		{"one missed an extension", []Reply{plain(time.Hour), plain(time.Hour), blocking(time.Hour), plain(short), absent}, "[]"},
		{"one missed an extension, and an undecided copy", []Reply{plain(time.Hour), plain(time.Hour), undecided, plain(short), absent}, "[]"},
		{"too few may have a longer lease", []Reply{plain(short), plain(short), blocking(time.Hour), plain(short), plain(time.Hour)}, "[2]"},
		{"an unread master may have a longer lease, too",
			[]Reply{plain(short), plain(short), blocking(time.Hour), plain(time.Hour), unread}, "[]"},
		{"one of four missed a value", []Reply{replaced(time.Hour), replaced(time.Hour), blocking(time.Hour), plain(short)}, "[]"},
		{"the value is chosen without it", []Reply{replaced(short), replaced(short), blocking(time.Hour), replaced(short)}, "[2]"},
		{"it is undetermined", []Reply{plain(short), plain(short), blocking(short), absent, absent}, "[]"},
		{"nobody holds it", []Reply{absent, absent, blocking(short), absent, absent}, "[2]"},
	} {
		t.Run(test.name, func(t *testing.T) {
			found := []int{}
			for _, l := range leftovers(test.replies, 0, resolve(test.replies, 0)) {
				found = append(found, l.master)
			}
			if got := fmt.Sprint(found); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// reported returns the reply of a master with a cell.
func reported(c cell.Cell, left time.Duration) Reply {
	return Reply{State: Counted, Answer: cell.Answer{KeyStates: []cell.KeyState{{Cell: c, TimeLeft: left}}}}
}
