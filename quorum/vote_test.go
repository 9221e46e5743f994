package quorum

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestGolden runs testdata/votes.txt: one line per case, votes of the masters
// in any order (y yes, n no, f failed, _ awaited), then the verdict on an
// acquire and on a release.
func TestGolden(t *testing.T) {
	file, err := os.Open("testdata/votes.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		line, _, _ := strings.Cut(lines.Text(), "#")
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		tally := tallyOf(fields[0])
		want := strings.Join(fields[1:], " ")
		got := fmt.Sprintf("%v | %v", tally.Verdict(), tally.ReleaseVerdict())
		if got != want {
			t.Errorf("%s: got %q, want %q", fields[0], got, want)
		}
	}
}

func tallyOf(votes string) Tally {
	return Tally{
		Masters: len(votes),
		Yes:     strings.Count(votes, "y"),
		No:      strings.Count(votes, "n"),
		Failed:  strings.Count(votes, "f"),
	}
}

// finalAcquire and finalRelease say what complete votes mean, in the words of
// the rules and without any early decision.
func finalAcquire(votes string) Verdict {
	t := tallyOf(votes)
	switch {
	case 2*t.Yes > t.Masters:
		return Won
	case 2*(t.Yes+t.No) > t.Masters:
		return Lost
	default:
		return NoQuorum
	}
}

func finalRelease(votes string) Verdict {
	t := tallyOf(votes)
	mayHaveHeld := t.Yes + t.Failed
	switch {
	case 2*t.Yes > t.Masters:
		return Won
	case 2*(t.Yes+t.No) <= t.Masters:
		return NoQuorum
	case 2*mayHaveHeld > t.Masters:
		return Won
	default:
		return Lost
	}
}

// outcomes is the dumb twin of an early decision: it tries every way in which
// the awaited votes may still come in.
func outcomes(votes string, final func(string) Verdict) map[Verdict]bool {
	i := strings.IndexByte(votes, '_')
	if i < 0 {
		return map[Verdict]bool{final(votes): true}
	}
	all := map[Verdict]bool{}
	for _, vote := range "ynf" {
		for v := range outcomes(votes[:i]+string(vote)+votes[i+1:], final) {
			all[v] = true
		}
	}
	return all
}

func checkAgainstTwin(t *rapid.T, votes string, got Verdict, final func(string) Verdict) {
	possible := outcomes(votes, final)
	if len(possible) == 1 && !possible[got] {
		t.Fatalf("%s: got %v, but only %v is possible", votes, got, possible)
	}
	if len(possible) > 1 && got != Pending {
		t.Fatalf("%s: decided %v too early, still possible: %v", votes, got, possible)
	}
}

func TestVerdictIsTheEarliestPossible(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		votes := rapid.StringOfN(rapid.RuneFrom([]rune("ynf_")), 1, 7, -1).Draw(t, "votes")
		checkAgainstTwin(t, votes, tallyOf(votes).Verdict(), finalAcquire)
		checkAgainstTwin(t, votes, tallyOf(votes).ReleaseVerdict(), finalRelease)
	})
}

func TestTwoMajoritiesMeet(t *testing.T) {
	for n := 1; n <= 100; n++ {
		if 2*Majority(n) <= n {
			t.Errorf("two disjoint majorities of %d masters", n)
		}
		if Majority(n) > n {
			t.Errorf("%d masters can never be a majority of themselves", n)
		}
	}
}
