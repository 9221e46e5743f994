package master

import (
	"slices"

	"redlock-proxy/internal/resp"
	"redlock-proxy/quorum/cell"
	"redlock-proxy/quorum/register"
)

// releases are those of a batch that go as one script, in the place of the first: a release of a
// granted lock may go ahead of operations on other keys, which nobody can have seen in order, and
// not of one on its own.
type releases struct {
	// of are their numbers in the batch, in order; all are what is to be removed.
	of  []int
	all cell.Releases
	// named are the keys of the batch since the first of them.
	named map[string]struct{}
}

// maxReleases bounds one script, so that other clients of the master do not wait for it.
const maxReleases = 128

// gather finds them. One alone goes as ever.
func (rs *releases) gather(ops []*op) {
	rs.forget()
	if len(ops) < 2 {
		return
	}
	for i, o := range ops {
		switch r, is := o.do.(cell.Remove); {
		case is && r.How == cell.Release && !o.whole:
			if !rs.name(r.Name) && len(rs.of) < maxReleases {
				rs.of, rs.all = append(rs.of, i), append(rs.all, r)
			}
		case len(rs.of) > 0:
			for _, key := range o.do.Keys() {
				rs.name(key)
			}
		}
	}
	if len(rs.of) < 2 {
		rs.forget()
	}
}

// name notes a key, and reports whether it was named before.
func (rs *releases) name(key string) (before bool) {
	if rs.named == nil {
		rs.named = map[string]struct{}{}
	}
	n := len(rs.named)
	rs.named[key] = struct{}{}
	return len(rs.named) == n
}

func (rs *releases) forget() {
	if len(rs.named) > maxReleases {
		rs.named = nil
	}
	clear(rs.named)
	clear(rs.all)
	rs.of, rs.all = rs.of[:0], rs.all[:0]
}

// first reports whether operation number i is the first of them; the others that are among the ops
// are done with it.
func (rs *releases) first(i int) bool { return len(rs.of) > 0 && rs.of[0] == i }

// has reports whether operation number i is one of them.
func (rs *releases) has(i int) bool {
	_, found := slices.BinarySearch(rs.of, i)
	return found
}

// decode reads the answer to all of them as a reply for each.
func (rs *releases) decode(said any, replies []reply) {
	if refusal, refused := said.(resp.Error); refused {
		rs.fill(replies, reply{State: register.Failed, Err: refusal})
		return
	}
	if size, skipped := sizeIn(said); skipped {
		rs.fill(replies, reply{State: register.Uncounted, Err: &tooLongError{size}})
		return
	}
	err := rs.all.Decode(said, func(n int, a cell.Answer) {
		replies[rs.of[n]] = reply{State: register.Counted, Answer: a}
	})
	if err != nil {
		rs.fill(replies, reply{State: register.Unknown, Err: err})
	}
}

// fill gives all of them the same reply.
func (rs *releases) fill(replies []reply, one reply) {
	for _, i := range rs.of {
		replies[i] = one
	}
}
