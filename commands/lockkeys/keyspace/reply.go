package keyspace

import "redlock-proxy/commands/lockkeys/keyspace/contents"

// Kind is the kind of a Reply.
type Kind uint8

// The kinds of replies to commands and scripts on lock keys.
const (
	Nil      Kind = iota // a null bulk string
	NilArray             // a null array, such as the reply to an EXEC that did not run
	Int                  // an integer
	Bulk                 // a bulk string
	Status               // a simple string, such as OK
	Error                // an error: its code and text, without the leading '-'
	Array                // an array
	Map                  // an array of keys, each followed by its value; a map in RESP3
	Set                  // an array; a set in RESP3
	Pairs                // a flat array of pairs; in RESP3 each pair is an array
	Double               // a bulk string; a double in RESP3
)

// Reply is a reply of Redis.
type Reply struct {
	Kind Kind
	// Int is the number of an Int.
	Int int64
	// Str is the text of a Bulk, Status or Error.
	Str string
	// Float is the number of a Double.
	Float float64
	// Elems holds the elements of an Array, Map, Set or Pairs.
	Elems []Reply
}

// InRESP2 converts a reply to RESP2, which has only the kinds up to Array.
func (r Reply) InRESP2() Reply {
	switch r.Kind {
	case Double:
		return BulkReply(r.Digits())
	case Array, Map, Set, Pairs:
		elems := make([]Reply, len(r.Elems))
		for i, e := range r.Elems {
			elems[i] = e.InRESP2()
		}
		return ArrayReply(elems...)
	}
	return r
}

// Digits returns the text of a Double.
func (r Reply) Digits() string { return contents.FormatDouble(r.Float) }

// OK returns the status reply of success.
func OK() Reply { return Reply{Kind: Status, Str: "OK"} }

// IntReply returns an integer reply.
func IntReply(n int64) Reply { return Reply{Kind: Int, Int: n} }

// BulkReply returns a bulk string reply.
func BulkReply(s string) Reply { return Reply{Kind: Bulk, Str: s} }

// ErrorReply returns an error reply; text begins with its upper-case code.
func ErrorReply(text string) Reply { return Reply{Kind: Error, Str: text} }

// ArrayReply returns an array reply.
func ArrayReply(elems ...Reply) Reply { return Reply{Kind: Array, Elems: elems} }

// DoubleReply returns the reply for a number that need not be an integer.
func DoubleReply(n float64) Reply { return Reply{Kind: Double, Float: n} }

// TextsReply returns an array reply of bulk strings.
func TextsReply(items []string) Reply { return textsReply(Array, items) }

// textsReply returns a reply of several bulk strings.
func textsReply(kind Kind, items []string) Reply {
	elems := make([]Reply, len(items))
	for i, text := range items {
		elems[i] = BulkReply(text)
	}
	return Reply{Kind: kind, Elems: elems}
}

// boolReply returns the reply 1 or 0.
func boolReply(value bool) Reply {
	if value {
		return IntReply(1)
	}
	return IntReply(0)
}
