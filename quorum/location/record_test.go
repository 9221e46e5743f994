package location

import (
	"context"
	"errors"
	"strings"
	"testing"
)

// unreadableRecord is a record that must not be read. Its value is its name.
type unreadableRecord string

func (n unreadableRecord) Name() string                           { return string(n) }
func (n unreadableRecord) Read(context.Context) (EraPlace, error) { panic("read") }
func (n unreadableRecord) Write(context.Context, EraPlace) error  { panic("written") }

func TestResolve(t *testing.T) {
	at := func(p Place, era int) EraPlace { return EraPlace{p, era} }
	none, refusedErr := EraPlace{}, errors.New("connection refused")
	for name, test := range map[string]struct {
		reportedPlace EraPlace
		forgotten     bool
		recordedPlace EraPlace
		readErr       error
		fromUpstream  bool
		want          EraPlace
		wantErr       string // part of the error
	}{
		"never moved":                            {reportedPlace: none, want: none},
		"moved, and recorded":                    {reportedPlace: at(Masters, 3), recordedPlace: at(Masters, 3), want: at(Masters, 3)},
		"the record is from before":              {reportedPlace: at(Upstream, 5), recordedPlace: at(Masters, 3), want: at(Upstream, 5)},
		"no record of it":                        {reportedPlace: at(Masters, 3), want: at(Masters, 3)},
		"the masters decide without an upstream": {reportedPlace: at(Masters, 3), readErr: refusedErr, want: at(Masters, 3)},
		"the record is from after": {
			reportedPlace: at(Masters, 3), recordedPlace: at(Upstream, 5),
			wantErr: "the record at the upstream up says upstream (era 5), the masters a, b say masters (era 3)",
		},
		"another place in the same era": {
			reportedPlace: at(Masters, 3), recordedPlace: at(Upstream, 3),
			wantErr: "if the masters are right, DEL redlock-proxy:locks-at",
		},
		"masters that were empty, and a record": {reportedPlace: none, recordedPlace: at(Masters, 3),
			wantErr: "the record at the upstream up"},
		"forgotten, and never moved":             {forgotten: true, want: none},
		"forgotten, and recorded":                {forgotten: true, recordedPlace: at(Masters, 3), want: at(Masters, 3)},
		"forgotten while they were on their way": {forgotten: true, recordedPlace: at(MovingToMasters, 4), want: at(Upstream, 5)},
		"forgotten, and a setting says otherwise": {forgotten: true, recordedPlace: at(Masters, 3), fromUpstream: true,
			wantErr: "remove that setting"},
		"forgotten, at the upstream by a setting": {forgotten: true, recordedPlace: at(Upstream, 5), fromUpstream: true,
			want: at(Upstream, 5)},
		"forgotten, and nobody to ask": {forgotten: true, readErr: refusedErr,
			wantErr: "cannot be read: connection refused"},
	} {
		reported := Report{EraPlace: test.reportedPlace, Known: !test.forgotten, Masters: []string{"a", "b"}}
		got, err := reported.Resolve(unreadableRecord("up"), test.recordedPlace, test.readErr, test.fromUpstream)
		switch {
		case test.wantErr == "" && (err != nil || got != test.want):
			t.Errorf("%s: %v, %v; want %v", name, got, err, test.want)
		case test.wantErr != "" && (err == nil || !strings.Contains(err.Error(), test.wantErr)):
			t.Errorf("%s: %v, %v; want an error with %q", name, got, err, test.wantErr)
		}
	}
}
