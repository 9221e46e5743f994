package location

import (
	"context"
	"errors"
	"strings"
	"testing"
)

// named is a record that must not be read.
type named string

func (n named) Name() string                     { return string(n) }
func (n named) Read(context.Context) (At, error) { panic("read") }
func (n named) Write(context.Context, At) error  { panic("written") }

func TestSettle(t *testing.T) {
	at := func(p Place, era int) At { return At{p, era} }
	nothing, silent := At{}, errors.New("connection refused")
	for name, test := range map[string]struct {
		said         At
		forgotten    bool
		has          At
		unread       error
		fromUpstream bool
		want         At
		refused      string // part of the error
	}{
		"never moved":                            {said: nothing, want: nothing},
		"moved, and recorded":                    {said: at(Masters, 3), has: at(Masters, 3), want: at(Masters, 3)},
		"the record is from before":              {said: at(Upstream, 5), has: at(Masters, 3), want: at(Upstream, 5)},
		"no record of it":                        {said: at(Masters, 3), want: at(Masters, 3)},
		"the masters decide without an upstream": {said: at(Masters, 3), unread: silent, want: at(Masters, 3)},
		"the record is from after": {
			said: at(Masters, 3), has: at(Upstream, 5),
			refused: "the record at the upstream up says upstream (era 5), the masters a, b say masters (era 3)",
		},
		"another place in the same era": {
			said: at(Masters, 3), has: at(Upstream, 3),
			refused: "if the masters are right, DEL redlock-proxy:locks-at",
		},
		"masters that were empty, and a record": {said: nothing, has: at(Masters, 3),
			refused: "the record at the upstream up"},
		"forgotten, and never moved":             {forgotten: true, want: nothing},
		"forgotten, and recorded":                {forgotten: true, has: at(Masters, 3), want: at(Masters, 3)},
		"forgotten while they were on their way": {forgotten: true, has: at(ToMasters, 4), want: at(Upstream, 5)},
		"forgotten, and a setting says otherwise": {forgotten: true, has: at(Masters, 3), fromUpstream: true,
			refused: "remove that setting"},
		"forgotten, at the upstream by a setting": {forgotten: true, has: at(Upstream, 5), fromUpstream: true,
			want: at(Upstream, 5)},
		"forgotten, and nobody to ask": {forgotten: true, unread: silent,
			refused: "cannot be read: connection refused"},
	} {
		said := Report{At: test.said, Known: !test.forgotten, By: []string{"a", "b"}}
		got, err := said.Resolve(named("up"), test.has, test.unread, test.fromUpstream)
		switch {
		case test.refused == "" && (err != nil || got != test.want):
			t.Errorf("%s: %v, %v; want %v", name, got, err, test.want)
		case test.refused != "" && (err == nil || !strings.Contains(err.Error(), test.refused)):
			t.Errorf("%s: %v, %v; want an error with %q", name, got, err, test.refused)
		}
	}
}
