package register

// sweeping says when what is remembered by key is worth a look for what is over: after as
// much was put in as was left then, and a little, counted in entries and in bytes. So memory is
// at most about twice what is in use, and a look costs next to nothing for each entry.
type sweeping struct {
	entries, bytes int // left after the last look
	added          int // bytes since then
}

const (
	sweptEntries = 1 << 10
	sweptBytes   = 1 << 20
)

// due is told that an entry of so many bytes was put, and how many there are.
func (s *sweeping) due(entries, bytes int) bool {
	s.added += bytes
	return entries >= 2*s.entries+sweptEntries || s.added >= s.bytes+sweptBytes
}

// done is told what was left.
func (s *sweeping) done(entries, bytes int) { *s = sweeping{entries: entries, bytes: bytes} }
