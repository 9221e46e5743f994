package cell

import (
	"math/big"
	"reflect"
	"testing"
	"time"

	"redlock-proxy/internal/resp"
)

func someCells() []Cell {
	s := NumberedSource(big.NewInt(7))
	a := s.Attempt()
	return []Cell{
		{Form: Plain, Attempt: a, Value: Value{Present: true, Text: "me"}},
		{Form: Plain, Attempt: a, Value: Value{Present: true}},
		{Form: Register, Attempt: a, Promised: s.Ballot(3), Value: Value{Present: true, Text: "me"}},
		{Form: Register, Attempt: a, Promised: s.Ballot(3), Accepted: s.Ballot(2),
			Value: Value{Changes: []Change{s.Change()}}},
		{Form: Register, Attempt: a, Promised: s.Ballot(4), Accepted: s.Ballot(4),
			Value: Value{Present: true, Text: "\x00v02", Changes: []Change{s.Change(), s.Change()}}},
		{Form: Blocking, Attempt: a},
		{Form: Mark, Attempt: a, Promised: s.Ballot(5)},
		{Form: Foreign, Value: Value{Present: true, Text: "a token of redsync's"}},
		{Form: Foreign, Value: Value{Present: true, Text: "#pnot an attempt"}},
	}
}

func TestParseReversesString(t *testing.T) {
	for _, c := range someCells() {
		if got := Parse(c.String()); !reflect.DeepEqual(got, c) {
			t.Errorf("%q: %+v, want %+v", c.String(), got, c)
		}
	}
}

func TestBallotRound(t *testing.T) {
	for ballot, want := range map[Ballot]uint64{
		NumberedSource(big.NewInt(7)).Ballot(3): 3, "000000000005~place": 5, "": 0, "12345": 0,
	} {
		if got := ballot.Round(); got != want {
			t.Errorf("%q: round %d, want %d", ballot, got, want)
		}
	}
}

// TestAppendToEqualsWords checks that AppendTo appends the command that Words returns.
func TestAppendToEqualsWords(t *testing.T) {
	a := NumberedSource(big.NewInt(7)).Attempt()
	ballot := NumberedSource(big.NewInt(7)).Ballot(3)
	take := Take{Names: []string{"job:1"}, Attempt: a, Tokens: []string{"me"}, TTL: 30 * time.Second}
	withoutTTL, withMark, withFence, beforeRedis7, emptyName, twoKeys := take, take, take, take, take, take
	withoutTTL.TTL, withMark.Mark, withFence.Fence, beforeRedis7.BeforeRedis7 = NoExpiry, ballot, 5, true
	emptyName.Names, emptyName.Tokens, emptyName.TTL = []string{"\r\n"}, []string{""}, 1500*time.Microsecond
	twoKeys.Names, twoKeys.Tokens = []string{"a", "b"}, []string{"me", "you"}
	ops := []Op{take, withoutTTL, withMark, withFence, beforeRedis7, emptyName, twoKeys}
	for _, mode := range []RemovalMode{Release, Undo, Clear, IfAccepted, IfBlocking, IfMark} {
		ops = append(ops,
			Remove{Name: "job:1", Attempt: a, Mode: mode},
			Remove{Name: "", Attempt: a, Mode: mode, AcceptedBallot: ballot})
	}
	for _, op := range ops {
		for _, withSource := range []bool{false, true} {
			got := string(op.(Appender).AppendTo([]byte("x"), withSource))
			want := string(resp.AppendCommand([]byte("x"), op.Words(withSource)...))
			if got != want {
				t.Errorf("%+v, %v: %q, want %q", op, withSource, got, want)
			}
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, c := range someCells() {
		f.Add(c.String())
	}
	f.Fuzz(func(t *testing.T, text string) {
		if got := Parse(text).String(); got != text && text != "" {
			t.Errorf("%q came back as %q", text, got)
		}
	})
}

func TestBallotsCompareByRoundFirst(t *testing.T) {
	low, high := NumberedSource(big.NewInt(1)), NumberedSource(big.NewInt(2))
	ordered := []Ballot{"", low.Ballot(1), high.Ballot(1), low.Ballot(2), high.Ballot(10)}
	for i := range ordered[1:] {
		if ordered[i] >= ordered[i+1] {
			t.Errorf("%q is not below %q", ordered[i], ordered[i+1])
		}
	}
	if got := high.Ballot(10).Round(); got != 10 {
		t.Errorf("round %d, want 10", got)
	}
}

// TestShowsOutcomeOf checks that a value shows the outcome of a proxy's last change, however many
// changes a few other proxies have made since.
func TestShowsOutcomeOf(t *testing.T) {
	proxies := make([]*Source, MaxChanges+2)
	for i := range proxies {
		proxies[i] = NumberedSource(big.NewInt(int64(i)))
	}
	older, newer := proxies[0].Change(), proxies[0].Change()
	value := Value{Present: true}.WithChange(Value{}, older)
	for range 100 {
		value = value.WithChange(value, proxies[1].Change())
	}
	if len(value.Changes) != 2 || !value.ShowsOutcomeOf(newer) || value.Changes[0] != older {
		t.Errorf("after many changes of one other: %q", value.Changes)
	}
	for _, p := range proxies[2 : MaxChanges+1] {
		value = value.WithChange(value, p.Change())
	}
	if value.ShowsOutcomeOf(newer) || len(value.Changes) != MaxChanges {
		t.Errorf("after changes of %d others: %q", MaxChanges, value.Changes)
	}
	if value = value.WithChange(value, newer); !value.ShowsOutcomeOf(newer) || value.LastChange() != newer {
		t.Errorf("after its own: %q", value.Changes)
	}
}
