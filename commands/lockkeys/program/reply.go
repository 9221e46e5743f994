package program

import (
	"redlock-proxy/commands/command"
	"redlock-proxy/commands/lockkeys/keyspace"
)

// WriteReply appends the reply of a program.
func WriteReply(r *command.Reply, v keyspace.Reply) {
	switch v.Kind {
	case keyspace.Nil:
		r.WriteNull()
	case keyspace.NilArray:
		r.WriteNullArray()
	case keyspace.Int:
		r.WriteInt(v.Int)
	case keyspace.Bulk:
		r.WriteBulk(v.Str)
	case keyspace.Status:
		r.WriteStatus(v.Str)
	case keyspace.Error:
		r.WriteError(v.Str)
	case keyspace.Double:
		r.WriteDouble(v.Digits())
	case keyspace.Pairs:
		writePairs(r, v.Elems)
	default:
		writeElements(r, v)
	}
}

// writeElements appends a reply that has elements.
func writeElements(r *command.Reply, v keyspace.Reply) {
	switch v.Kind {
	case keyspace.Map:
		r.WriteMap(len(v.Elems) / 2)
	case keyspace.Set:
		r.WriteSet(len(v.Elems))
	default:
		r.WriteArray(len(v.Elems))
	}
	for _, e := range v.Elems {
		WriteReply(r, e)
	}
}

// writePairs appends an array of pairs, or in RESP2 one flat array.
func writePairs(r *command.Reply, parts []keyspace.Reply) {
	if r.Proto != 3 {
		r.WriteArray(len(parts))
	} else {
		r.WriteArray(len(parts) / 2)
	}
	for i, e := range parts {
		if r.Proto == 3 && i%2 == 0 {
			r.WriteArray(2)
		}
		WriteReply(r, e)
	}
}
