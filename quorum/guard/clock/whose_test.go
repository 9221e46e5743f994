package clock

import (
	"testing"
	"time"
)

func TestWhoseClock(t *testing.T) {
	forward := Step{Moved: 90 * time.Second}
	slept := Step{Moved: 90 * time.Second, Missed: 90*time.Second - 3*time.Millisecond}
	back := Step{Moved: -90 * time.Second, Missed: -90 * time.Second}
	for _, c := range []struct {
		name   string
		m      Step
		others []Other
		want   Owner
		asked  bool
	}{
		{"another one fits", forward, []Other{OtherUnknown, OtherFits, OtherAlike}, OwnerMaster, false},
		{"all moved alike", forward, []Other{OtherAlike, OtherAlike}, OwnerUnclear, false},
		{"all moved alike, and the machine was suspended", slept, []Other{OtherAlike, OtherAlike}, OwnerOurs, false},
		{"suspended, but another one fits", slept, []Other{OtherAlike, OtherFits}, OwnerMaster, false},
		{"one is hung", forward, []Other{OtherAlike, OtherUnknown}, OwnerUnclear, true},
		{"there is no other", forward, nil, OwnerUnclear, false},
		{"back", back, []Other{OtherAlike}, OwnerUnclear, false},
	} {
		if got, asked := Whose(c.m, c.others); got != c.want || asked != c.asked {
			t.Errorf("%s: got %d, %v, want %d, %v", c.name, got, asked, c.want, c.asked)
		}
	}
}
