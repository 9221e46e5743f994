package program

import (
	"redlock-proxy/commands/command"
	"redlock-proxy/commands/lockkeys/keyspace"
)

// WriteReply appends the reply of a program.
func WriteReply(r *command.Reply, v keyspace.Reply) {
	switch v.Kind {
	case keyspace.Nil:
		r.Null()
	case keyspace.NilArray:
		r.NullArray()
	case keyspace.Int:
		r.Int(v.Int)
	case keyspace.Bulk:
		r.Bulk(v.Str)
	case keyspace.Status:
		r.Status(v.Str)
	case keyspace.Error:
		r.Error(v.Str)
	case keyspace.Double:
		r.Double(v.Digits())
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
		r.Map(len(v.Elems) / 2)
	case keyspace.Set:
		r.Set(len(v.Elems))
	default:
		r.Array(len(v.Elems))
	}
	for _, e := range v.Elems {
		WriteReply(r, e)
	}
}

// writePairs appends an array of pairs, or in RESP2 one flat array.
func writePairs(r *command.Reply, parts []keyspace.Reply) {
	if r.Proto != 3 {
		r.Array(len(parts))
	} else {
		r.Array(len(parts) / 2)
	}
	for i, e := range parts {
		if r.Proto == 3 && i%2 == 0 {
			r.Array(2)
		}
		WriteReply(r, e)
	}
}
