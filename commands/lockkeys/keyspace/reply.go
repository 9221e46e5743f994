package keyspace

import "redlock-proxy/commands/lockkeys/keyspace/contents"

// Kind is the kind of a Reply.
type Kind uint8

// The kinds of replies that commands and scripts on lock keys give.
const (
	Nil      Kind = iota // a null bulk string
	NilArray             // a null array, as of an EXEC that was not carried out
	Int                  // an integer
	Bulk                 // a bulk string
	Status               // a simple string, such as OK
	Error                // an error: its code and text, without the leading '-'
	Array                // an array
	Map                  // an array of keys, each followed by its value; a map in RESP3
	Set                  // an array; a set in RESP3
	Pairs                // an array of pairs, one after the other; in RESP3 each is an array
	Double               // a bulk string; a double in RESP3
)

// Reply is a reply of Redis as a value.
type Reply struct {
	Kind Kind
	// Int is the number of an Int.
	Int int64
	// Str is the text of a Bulk, Status or Error.
	Str string
	// Float is the number of a Double.
	Float float64
	// Elems are the elements of an Array, Map, Set or Pairs.
	Elems []Reply
}

// Plain is the reply as RESP2 has it, which knows only the kinds up to Array.
func (r Reply) Plain() Reply {
	switch r.Kind {
	case Double:
		return Text(r.Digits())
	case Array, Map, Set, Pairs:
		elems := make([]Reply, len(r.Elems))
		for i, e := range r.Elems {
			elems[i] = e.Plain()
		}
		return List(elems...)
	}
	return r
}

// Digits are how a Double is written.
func (r Reply) Digits() string { return contents.FormatDouble(r.Float) }

// OK is the status reply of what was done.
func OK() Reply { return Reply{Kind: Status, Str: "OK"} }

// Number is an integer reply.
func Number(n int64) Reply { return Reply{Kind: Int, Int: n} }

// Text is a bulk string reply.
func Text(s string) Reply { return Reply{Kind: Bulk, Str: s} }

// Fail is an error reply; text begins with its upper-case code.
func Fail(text string) Reply { return Reply{Kind: Error, Str: text} }

// List is an array reply.
func List(elems ...Reply) Reply { return Reply{Kind: Array, Elems: elems} }

// Real is the reply of a number that need not be an integer.
func Real(n float64) Reply { return Reply{Kind: Double, Float: n} }

// Texts is an array reply of bulk strings.
func Texts(all []string) Reply { return texts(Array, all) }

// texts is a reply of several bulk strings.
func texts(kind Kind, all []string) Reply {
	elems := make([]Reply, len(all))
	for i, text := range all {
		elems[i] = Text(text)
	}
	return Reply{Kind: kind, Elems: elems}
}

// truth is 1 or 0.
func truth(is bool) Reply {
	if is {
		return Number(1)
	}
	return Number(0)
}
