package place

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// RecordKey is the key of the record that the upstream keeps of where the locks are: a hash in
// database 0. A field has the number of an era and the globs of the lock keys, its value the place
// in that era. Who writes a field takes it only if nobody has, so a late one changes nothing: the
// highest era counts.
const RecordKey = "redlock-proxy:locks-at"

// At is where the locks are, and the number of the era of the masters in which they are there. Its
// zero value: nothing is said of that.
type At struct {
	Place
	// Era is its number.
	Era int
}

// RecordField is the field of an era.
func RecordField(era int, lockKeys []string) string {
	globs, _ := json.Marshal(slices.Sorted(slices.Values(lockKeys)))
	return fmt.Sprintf("%d %s", era, globs)
}

// Recorded reads a record: of the fields on lock keys that overlap with a proxy's the one of the
// highest era. before are the other ones.
func Recorded(fields map[string]string, overlap func(lockKeys []string) bool) (at At, before []string) {
	latest := ""
	for field, word := range fields {
		number, globs, _ := strings.Cut(field, " ")
		era, err := strconv.Atoi(number)
		var lockKeys []string
		if err != nil || Parse(word) == Undecided || json.Unmarshal([]byte(globs), &lockKeys) != nil || !overlap(lockKeys) {
			continue
		}
		switch {
		case era > at.Era:
			if latest != "" {
				before = append(before, latest)
			}
			at, latest = At{Parse(word), era}, field
		default:
			before = append(before, field)
		}
	}
	return at, before
}

// Said is what a majority of masters say of where the locks are. Known is false where they have
// forgotten it.
type Said struct {
	At
	Known bool
	// By are the names of the masters.
	By []string
}

// Settle is where the locks are, by what the masters say and by what the record has, unless that is
// unread; or why nobody can know. fromUpstream: a setting says that they are at the upstream.
func (s Said) Settle(record Record, has At, unread error, fromUpstream bool) (At, error) {
	switch {
	case s.Known && unread == nil && has.contradicts(s.At):
		return s.At, errors.New(contradiction(record.Name(), has, s.By, s.At))
	case s.Known || unread == nil && has.Era == 0:
		return s.At, nil
	case unread != nil:
		return s.At, fmt.Errorf("the masters have forgotten it, and the upstream, which may have it, cannot be asked: %w", unread)
	}
	return restored(record, has, fromUpstream)
}

// contradicts reports whether a record is not from before what the masters say: they have forgotten
// what they decided since.
func (a At) contradicts(masters At) bool {
	return a.Era > 0 && (masters.Place == Undecided || a.Era > masters.Era || a.Era == masters.Era && a.Place != masters.Place)
}

// restored is where the locks are once the masters have forgotten that and all that they held. If
// they were on their way, those that count may all be at the upstream by then, or still.
// fromUpstream: a setting says that they are at the upstream.
func restored(record Record, has At, fromUpstream bool) (At, error) {
	switch {
	case has.Moves():
		return At{Upstream, has.Era + 1}, nil
	case has.Place == Masters && fromUpstream:
		return has, fmt.Errorf("the record at the upstream %s says %s, and move-from-upstream that they are there; leave that setting out or, if locks are taken there, DEL %s at the upstream",
			record.Name(), has.Shown(), RecordKey)
	}
	return has, nil
}

// contradiction says that the record at an upstream is from after what some masters say.
func contradiction(upstream string, has At, names []string, masters At) string {
	return fmt.Sprintf("the record at the upstream %s says %s, the masters %s say %s; if the masters are right, DEL %s at the upstream; if the record is, empty the masters, "+
		"and run redlock-proxy init", upstream, has.Shown(), strings.Join(names, ", "), masters.Shown(), RecordKey)
}

// Shown is for an operator.
func (a At) Shown() string { return fmt.Sprintf("%s (era %d)", a.Place.Shown(), a.Era) }

// Record is where the locks are as the upstream keeps it. Of an upstream at which this proxy may
// not read there is none: by such a proxy no locks were moved.
type Record interface {
	// Name is the upstream's.
	Name() string
	Read(ctx context.Context) (At, error)
	// Write adds it.
	Write(ctx context.Context, at At) error
}
