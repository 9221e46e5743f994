package vote

import (
	_ "embed"
	"strings"
	"testing"
)

//go:embed testdata/votes.txt
var votes string

// name returns a result in the words of votes.txt.
func name(r Result) string { return map[Result]string{Pending: "pending", Won: "won", Lost: "lost"}[r] }

func TestCount(t *testing.T) {
	for line := range strings.Lines(votes) {
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		cast, want := words[0], words[1]
		if got := Count(len(cast), strings.Count(cast, "y"), strings.Count(cast, "_")); name(got) != want {
			t.Errorf("%s: %s, want %s", cast, name(got), want)
		}
	}
}

// TestEarlyCount checks that the result of open votes is the result that all their outcomes
// share, or Pending if the outcomes have different results.
func TestEarlyCount(t *testing.T) {
	for n := 1; n <= 9; n++ {
		for yes := range n + 1 {
			for open := range n - yes + 1 {
				want := Count(n, yes, 0)
				if want != Count(n, yes+open, 0) {
					want = Pending
				}
				if got := Count(n, yes, open); got != want {
					t.Errorf("%d of %d, %d open: %s, want %s", yes, n, open, name(got), name(want))
				}
			}
		}
	}
}

// TestReadQuorum checks that a read quorum shares a master with every majority, and is the least
// such number.
func TestReadQuorum(t *testing.T) {
	for n := 1; n <= 9; n++ {
		if r := ReadQuorum(n); r+Majority(n) <= n || r-1+Majority(n) > n {
			t.Errorf("a read quorum of %d is not %d", n, r)
		}
	}
}
