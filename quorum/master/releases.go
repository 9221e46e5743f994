package master

import (
	"slices"

	"redlock-proxy/internal/resp"
	"redlock-proxy/quorum/cell"
	"redlock-proxy/quorum/register"
)

// releases holds the releases of a batch that the link sends as one script, in the place of the
// first release. A release of a granted lock may overtake operations on other keys, because no
// client can have observed their order. It must not overtake operations on its own key.
type releases struct {
	// indexes holds the ascending indexes of the releases in the batch, and removals their
	// operations.
	indexes  []int
	removals cell.Releases
	// seenKeys holds the keys of the batch since the first release.
	seenKeys map[string]struct{}
}

// maxReleases limits the releases in one script, so that other clients of the master do not wait
// long.
const maxReleases = 128

// collect finds the releases of a batch that can be combined. The link sends a single release as
// usual.
func (rs *releases) collect(ops []*op) {
	rs.reset()
	if len(ops) < 2 {
		return
	}
	for i, o := range ops {
		switch r, ok := o.cellOp.(cell.Remove); {
		case ok && r.Mode == cell.Release && !o.fullScript:
			if !rs.noteKey(r.Name) && len(rs.indexes) < maxReleases {
				rs.indexes, rs.removals = append(rs.indexes, i), append(rs.removals, r)
			}
		case len(rs.indexes) > 0:
			for _, key := range o.cellOp.Keys() {
				rs.noteKey(key)
			}
		}
	}
	if len(rs.indexes) < 2 {
		rs.reset()
	}
}

// noteKey adds a key to seenKeys, and reports whether seenKeys had it before.
func (rs *releases) noteKey(key string) (wasKnown bool) {
	if rs.seenKeys == nil {
		rs.seenKeys = map[string]struct{}{}
	}
	n := len(rs.seenKeys)
	rs.seenKeys[key] = struct{}{}
	return len(rs.seenKeys) == n
}

func (rs *releases) reset() {
	if len(rs.seenKeys) > maxReleases {
		rs.seenKeys = nil
	}
	clear(rs.seenKeys)
	clear(rs.removals)
	rs.indexes, rs.removals = rs.indexes[:0], rs.removals[:0]
}

// first reports whether operation number i is the first of the combined releases, which the script
// replaces.
func (rs *releases) first(i int) bool { return len(rs.indexes) > 0 && rs.indexes[0] == i }

// has reports whether operation number i is one of the combined releases.
func (rs *releases) has(i int) bool {
	_, found := slices.BinarySearch(rs.indexes, i)
	return found
}

// decode decodes the reply to the script into a reply for each release.
func (rs *releases) decode(raw any, replies []reply) {
	if refusal, isError := raw.(resp.Error); isError {
		rs.fill(replies, reply{State: register.Failed, Err: refusal})
		return
	}
	if size, skipped := parseSize(raw); skipped {
		rs.fill(replies, reply{State: register.Uncounted, Err: &tooLongError{size}})
		return
	}
	err := rs.removals.Decode(raw, func(n int, a cell.Answer) {
		replies[rs.indexes[n]] = reply{State: register.Counted, Answer: a}
	})
	if err != nil {
		rs.fill(replies, reply{State: register.Unknown, Err: err})
	}
}

// fill sets the same reply for all combined releases.
func (rs *releases) fill(replies []reply, sharedReply reply) {
	for _, i := range rs.indexes {
		replies[i] = sharedReply
	}
}
