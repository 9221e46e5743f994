package quorum

import (
	"testing"
	"time"
)

func TestSettle(t *testing.T) {
	now := time.Now()
	lasts := func(value string, left time.Duration) held {
		if left < 0 {
			return held{value: value}
		}
		return held{value, now.Add(left)}
	}
	const none = ""
	for _, c := range []struct {
		name  string
		views []held // of each source; an empty value: it does not hold the key
		want  held
		how   choice
	}{
		{"one holds it", []held{lasts("a", 1), {}, {}, {}}, lasts("a", 1), agreed},
		{"all do, for different times", []held{lasts("a", 1), lasts("a", 3), lasts("a", 2), {}}, lasts("a", 3), agreed},
		{"no end is the latest", []held{lasts("a", 1), lasts("a", -1), lasts("a", 2), {}}, lasts("a", -1), agreed},
		{"two values", []held{lasts("a", 1), lasts("b", 3), {}, {}}, held{}, split},
		{"two and two", []held{lasts("a", 1), lasts("b", 3), lasts("a", 1), lasts("b", 3)}, held{}, split},
		{"three and one", []held{lasts("b", 9), lasts("a", 1), lasts("a", 4), lasts("a", 2)}, lasts("a", 4), majority},
	} {
		t.Run(c.name, func(t *testing.T) {
			var views []view
			for _, h := range c.views {
				v := view{}
				if h.value != none {
					v["k"] = h
				}
				views = append(views, v)
			}
			if got, how := settle(views, "k", 3); got != c.want || how != c.how {
				t.Errorf("got %+v, %d, want %+v, %d", got, how, c.want, c.how)
			}
		})
	}
}

// TestCopyingComparesPasses: what is written by each pass, in a row of them.
func TestCopyingComparesPasses(t *testing.T) {
	now := time.Now()
	c := &copying{quorum: 2, copied: map[string]held{}, contended: map[string]bool{}}
	a, b := held{"a", now.Add(time.Minute)}, held{"b", now.Add(time.Minute)}
	for n, pass := range []struct {
		first, second, third view
		want                 []any
		settled              bool
	}{
		{view{"k": a}, view{"k": a}, view{}, []any{"k", "a", "60000"}, true},
		{view{"k": a}, view{}, view{}, nil, true},
		{view{"k": {"a", now.Add(time.Hour)}}, view{}, view{}, []any{"k", "a", "3600000"}, true},
		{view{"k": {value: "a"}}, view{}, view{}, []any{"k", "a", "-1"}, true},
		{view{"k": a}, view{"k": b}, view{}, nil, false},
		{view{"k": a}, view{"k": b}, view{"k": b}, []any{"k", "b", "60000"}, true},
		{view{}, view{}, view{}, []any{"k", "b", "-2"}, true},
		{view{"k": a}, view{"k": b}, view{"k": b}, []any{"k", "b", "60000"}, false}, // a majority once
	} {
		got := c.compare([]view{pass.first, pass.second, pass.third}, now)
		if len(got) != len(pass.want) || c.settled != pass.settled {
			t.Fatalf("pass %d: got %v, settled: %v", n, got, c.settled)
		}
		for i := range got {
			if got[i] != pass.want[i] {
				t.Errorf("pass %d: got %v, want %v", n, got, pass.want)
			}
		}
	}
}
