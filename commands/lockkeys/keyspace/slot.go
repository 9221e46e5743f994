package keyspace

import (
	"fmt"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/lockkeys/keyspace/contents"
)

const errWrongType = "WRONGTYPE Operation against a key holding the wrong kind of value"

// slot is a key of a Space.
type slot struct {
	key     string
	was     Entry
	present bool
	// content is what the key holds, once it was looked at, and encoded the same for the quorum, as
	// long as nothing has changed it.
	content contents.Content
	encoded string
	changed bool
	expires int64 // Unix time in milliseconds, or never or sometime
	// kept: the expiry is still the one that the key had.
	kept           bool
	touched, asked bool
	by             string
}

// value is what the key holds, for the quorum.
func (sl *slot) value() string {
	if sl.changed {
		sl.encoded, sl.changed = contents.Encode(sl.content), false
	}
	return sl.encoded
}

// look is what a present key holds, unless it cannot be read.
func (sl *slot) look() (held contents.Content, err error) {
	if sl.content == nil {
		sl.content, err = contents.Decode(sl.encoded)
	}
	return sl.content, err
}

// read is look for a command, which is refused where that fails.
func (sl *slot) read() contents.Content {
	content, err := sl.look()
	if err != nil {
		refuse(fmt.Sprintf("ERR lock key '%s' holds what this version of the proxy cannot read", syntax.Shown(sl.key)))
	}
	return content
}

// kind is which kind of value a present key holds.
func (sl *slot) kind() string {
	if sl.content != nil {
		return sl.content.Kind().String()
	}
	return contents.KindName(sl.encoded)
}

// held is the content of one kind; nothing where the key is absent. A command on another kind is
// refused.
func held[T contents.Content](sl *slot) (content T) {
	if sl.present {
		var is bool
		content, is = sl.read().(T)
		require(is, errWrongType)
	}
	return content
}

// first is a command's first key and its content of one kind.
func first[T contents.Content](c call) (*slot, T) {
	sl := c.ask(c.words[1])
	return sl, held[T](sl)
}

func (c call) hash() (*slot, *contents.Hash)        { return first[*contents.Hash](c) }
func (c call) list() (*slot, *contents.List)        { return first[*contents.List](c) }
func (c call) members() (*slot, *contents.Set)      { return first[*contents.Set](c) }
func (c call) sorted() (*slot, *contents.SortedSet) { return first[*contents.SortedSet](c) }

// length is HLEN, LLEN, SCARD and ZCARD key.
func length[T contents.Content](c call) Reply {
	_, content := first[T](c)
	return Number(int64(content.Len()))
}

// removes is HDEL, SREM and ZREM key element ….
func removes[T interface {
	contents.Content
	Delete(element string) bool
}](c call) Reply {
	sl, content := first[T](c)
	if !sl.present {
		return Number(0)
	}
	gone := tally(c.words[2:], content.Delete)
	sl.edited(content)
	return Number(gone)
}

// tally counts the words of which something is true.
func tally(words []string, is func(word string) bool) (n int64) {
	for _, word := range words {
		if is(word) {
			n++
		}
	}
	return n
}

// text is the string of a key; empty where it is absent.
func (sl *slot) text() string { return string(held[contents.Text](sl)) }

// set puts a content there without expiry.
func (sl *slot) set(content contents.Content) {
	sl.present, sl.content, sl.changed = true, content, true
	sl.expires, sl.kept, sl.by = never, false, ""
}

// replace puts a content there and leaves the expiry, if there is one.
func (sl *slot) replace(content contents.Content) {
	if !sl.present {
		sl.set(content)
		return
	}
	sl.content, sl.changed = content, true
}

// edited takes note of a collection that was changed, which may be a new one. Without elements the
// key goes.
func (sl *slot) edited(content contents.Content) {
	if content.Len() == 0 {
		sl.remove()
		return
	}
	sl.replace(content)
}

// store puts a collection there in the place of whatever there was.
func (sl *slot) store(content contents.Content) {
	if content.Len() == 0 {
		sl.remove()
		return
	}
	sl.set(content)
	sl.encoded, sl.content, sl.changed = sl.value(), nil, false // it is looked at as it is kept: without -0
}

// remove takes the key away.
func (sl *slot) remove() {
	sl.present, sl.content, sl.encoded, sl.changed, sl.kept = false, nil, "", false, false
}

// size is how many bytes it has for the quorum.
func (sl *slot) size() int {
	if sl.content != nil {
		return sl.content.Size()
	}
	return len(sl.encoded)
}

// elements counts those of a collection.
func (sl *slot) elements() int {
	if !sl.present || sl.content == nil && !contents.IsMarked(sl.encoded) {
		return 0
	}
	if content, err := sl.look(); err == nil {
		return content.Len()
	}
	return 0
}

// isTooLarge is true of a collection with more bytes or elements than are kept.
func (sl *slot) isTooLarge() bool {
	return sl.present && sl.kind() != contents.TextKind.String() && (sl.size() > maxValue || sl.elements() > maxElements)
}

// takeBack has it hold what it held, and be looked at.
func (sl *slot) takeBack(was slot) {
	was.touched, was.asked, was.content = sl.touched, true, nil
	*sl = was
}
