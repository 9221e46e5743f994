package location

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// RecordKey is the key of the upstream's record of the location of the locks: a hash in database 0.
// A field is the number of an era and the globs of the lock keys; its value is the place in that
// era. A proxy sets a field only if it is absent, so a late write changes nothing. The highest era
// counts.
const RecordKey = "redlock-proxy:locks-at"

// EraPlace is a place and the number of its era. The zero value means that the masters have never
// decided.
type EraPlace struct {
	Place
	Era int
}

// RecordField returns the name of the field of an era.
func RecordField(era int, lockKeys []string) string {
	globs, _ := json.Marshal(slices.Sorted(slices.Values(lockKeys)))
	return fmt.Sprintf("%d %s", era, globs)
}

// ParseRecord decodes a record. It considers only fields whose lock keys overlap with the proxy's
// own, and returns the place of the highest era. olderFields holds the names of the fields with
// such lock keys for earlier eras.
func ParseRecord(fields map[string]string, overlap func(lockKeys []string) bool) (highestPlace EraPlace, olderFields []string) {
	latestField := ""
	for field, place := range fields {
		number, globs, _ := strings.Cut(field, " ")
		era, err := strconv.Atoi(number)
		var lockKeys []string
		if err != nil || Parse(place) == Undecided ||
			json.Unmarshal([]byte(globs), &lockKeys) != nil || !overlap(lockKeys) {
			continue
		}
		if era <= highestPlace.Era {
			olderFields = append(olderFields, field)
			continue
		}
		if latestField != "" {
			olderFields = append(olderFields, latestField)
		}
		highestPlace, latestField = EraPlace{Parse(place), era}, field
	}
	return highestPlace, olderFields
}

// Report is the location of the locks according to a majority of the masters. Known is false if the
// masters have lost this location.
type Report struct {
	EraPlace
	Known bool
	// Masters holds the names of the masters.
	Masters []string
}

// Resolve determines the location of the locks, from the report of the masters and the record.
// readErr is the error of reading the record. The returned error explains why the location is
// unknown. fromUpstream is the setting move-from-upstream.
func (s Report) Resolve(record Record, recordedPlace EraPlace, readErr error, fromUpstream bool) (EraPlace, error) {
	switch {
	case s.Known && readErr == nil && recordedPlace.contradicts(s.EraPlace):
		return s.EraPlace, fmt.Errorf("the record at the upstream %s says %s, the masters %s say %s; "+
			"if the masters are right, DEL %s at the upstream; "+
			"if the record is right, empty the masters and run redlock-proxy init",
			record.Name(), recordedPlace.Describe(), strings.Join(s.Masters, ", "), s.EraPlace.Describe(), RecordKey)
	case s.Known || readErr == nil && recordedPlace.Era == 0:
		return s.EraPlace, nil
	case readErr != nil:
		return s.EraPlace, fmt.Errorf(
			"the masters have no record of the location of the locks, and the upstream's record cannot be read: %w", readErr)
	}
	return placeAfterLoss(record, recordedPlace, fromUpstream)
}

// contradicts reports whether the record a shows that the masters have lost later decisions.
func (a EraPlace) contradicts(masters EraPlace) bool {
	return a.Era > 0 &&
		(masters.Place == Undecided || a.Era > masters.Era || a.Era == masters.Era && a.Place != masters.Place)
}

// placeAfterLoss returns the location of the locks after the masters have lost this location and
// all their cells. If the locks were being moved, all locks that count may be at the upstream.
// fromUpstream is the setting move-from-upstream.
func placeAfterLoss(record Record, recordedPlace EraPlace, fromUpstream bool) (EraPlace, error) {
	switch {
	case recordedPlace.Moves():
		return EraPlace{Upstream, recordedPlace.Era + 1}, nil
	case recordedPlace.Place == Masters && fromUpstream:
		return recordedPlace, fmt.Errorf("the record at the upstream %s says %s, but move-from-upstream says upstream; "+
			"remove that setting or, if clients lock at the upstream, DEL %s at the upstream",
			record.Name(), recordedPlace.Describe(), RecordKey)
	}
	return recordedPlace, nil
}

// Describe returns the place and the era for an operator.
func (a EraPlace) Describe() string { return fmt.Sprintf("%s (era %d)", a.Place.Describe(), a.Era) }

// Record reads and writes the upstream's record. For a proxy that has no login at the upstream, and
// may not read there without one, the record is empty: such a proxy moves no locks.
type Record interface {
	// Name returns the name of the upstream.
	Name() string
	// Read returns the location with the highest era in the record.
	Read(ctx context.Context) (EraPlace, error)
	// Write adds a field for place.
	Write(ctx context.Context, place EraPlace) error
}
