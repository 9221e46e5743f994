package keyspace

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
)

// Reply is a reply of Redis as a value.
type Reply struct {
	Kind Kind
	// Int is the number of an Int.
	Int int64
	// Str is the text of a Bulk, Status or Error.
	Str string
	// Elems are the elements of an Array.
	Elems []Reply
}

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
