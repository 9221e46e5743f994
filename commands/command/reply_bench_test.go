package command

import "testing"

// BenchmarkReply encodes the replies of LOCK with FENCE, of GET and of a refusal.
func BenchmarkReply(b *testing.B) {
	r := Reply{Proto: 2}
	for b.Loop() {
		r.Bytes = r.Bytes[:0]
		r.WriteArray(2)
		r.WriteInt(9_876)
		r.WriteInt(123_456)
		r.WriteBulk("b2f5c1a07f3e4d68a9c0d1e2f3a4b5c6")
		r.WriteNull()
		r.WriteStatus("OK")
		r.WriteError("ERR lock key 'k' is contended: every try collided with a change by another client; try again")
	}
}
