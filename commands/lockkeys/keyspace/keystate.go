package keyspace

import (
	"fmt"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/lockkeys/keyspace/contents"
)

const errWrongType = "WRONGTYPE Operation against a key holding the wrong kind of value"

// keyState holds the state of a key in a Snapshot.
type keyState struct {
	key          string
	initialEntry Entry
	present      bool
	// content is the decoded value, or nil if no command has needed it. encoded is the encoded
	// value. encodedIsStale is true if content is newer than encoded.
	content        contents.Content
	encoded        string
	encodedIsStale bool
	expiresAt      int64 // Unix time in milliseconds, or noExpiry or unknownExpiry
	// keepsExpiry is true while no command has changed the expiry.
	keepsExpiry            bool
	isUsed, replyDependsOn bool
	expiryCommand          string
}

func (k *keyState) value() string {
	if k.encodedIsStale {
		k.encoded, k.encodedIsStale = contents.Encode(k.content), false
	}
	return k.encoded
}

// decode returns the content of an existing key. It fails if the value has an unknown format.
func (k *keyState) decode() (content contents.Content, err error) {
	if k.content == nil {
		k.content, err = contents.Decode(k.encoded)
	}
	return k.content, err
}

// read returns the content of an existing key, or refuses the command if decode fails.
func (k *keyState) read() contents.Content {
	content, err := k.decode()
	if err != nil {
		refuse(fmt.Sprintf("ERR cannot read lock key '%s': "+
			"this version of the proxy does not know the format of its value; upgrade the proxy, or DEL the key",
			syntax.Excerpt(k.key)))
	}
	return content
}

// kind returns the type of an existing key.
func (k *keyState) kind() string {
	if k.content != nil {
		return k.content.Kind().String()
	}
	return contents.KindName(k.encoded)
}

// contentOf returns the content of a key, or nil if the key is absent. It refuses a command on a
// key of another type.
func contentOf[T contents.Content](k *keyState) (content T) {
	if k.present {
		var ok bool
		content, ok = k.read().(T)
		require(ok, errWrongType)
	}
	return content
}

// firstKey returns a command's first key and its content.
func firstKey[T contents.Content](c call) (*keyState, T) {
	k := c.observe(c.words[1])
	return k, contentOf[T](k)
}

func (c call) hash() (*keyState, *contents.Hash)           { return firstKey[*contents.Hash](c) }
func (c call) list() (*keyState, *contents.List)           { return firstKey[*contents.List](c) }
func (c call) members() (*keyState, *contents.Set)         { return firstKey[*contents.Set](c) }
func (c call) sortedSet() (*keyState, *contents.SortedSet) { return firstKey[*contents.SortedSet](c) }

// length implements HLEN, LLEN, SCARD and ZCARD key.
func length[T contents.Content](c call) Reply {
	_, content := firstKey[T](c)
	return IntReply(int64(content.Len()))
}

// removeElements implements HDEL, SREM and ZREM key element ….
func removeElements[T interface {
	contents.Content
	Delete(element string) bool
}](c call) Reply {
	k, content := firstKey[T](c)
	if !k.present {
		return IntReply(0)
	}
	removed := countWhere(c.words[2:], content.Delete)
	k.setCollection(content)
	return IntReply(removed)
}

// countWhere counts the words for which matches returns true.
func countWhere(words []string, matches func(word string) bool) (n int64) {
	for _, word := range words {
		if matches(word) {
			n++
		}
	}
	return n
}

// text returns the string of a key, or "" if the key is absent.
func (k *keyState) text() string { return string(contentOf[contents.Text](k)) }

// refuseHolders refuses the command if the key is a lock that several clients can hold. The value
// of such a key has an expiry for each holder, relative to the expiry of the key. So no command may
// change the expiry of the key, or copy the value to another key.
func (k *keyState) refuseHolders() {
	if k.present {
		_, isLock := k.read().(contents.Holders)
		require(!isLock, errWrongType)
	}
}

// set sets a content without expiry.
func (k *keyState) set(content contents.Content) {
	k.present, k.content, k.encodedIsStale = true, content, true
	k.expiresAt, k.keepsExpiry, k.expiryCommand = noExpiry, false, ""
}

// replace sets a content and keeps the expiry of the key, if the key has one.
func (k *keyState) replace(content contents.Content) {
	if !k.present {
		k.set(content)
		return
	}
	k.content, k.encodedIsStale = content, true
}

// setCollection sets a collection that a command changed or created. An empty collection removes
// the key.
func (k *keyState) setCollection(content contents.Content) {
	if content.Len() == 0 {
		k.remove()
		return
	}
	k.replace(content)
}

// overwrite replaces a value of any type by a collection without expiry. An empty collection
// removes the key.
func (k *keyState) overwrite(content contents.Content) {
	if content.Len() == 0 {
		k.remove()
		return
	}
	k.set(content)
	// The encoding has no -0. Later commands decode the value again, and so see the same scores as
	// other proxies.
	k.encoded, k.content, k.encodedIsStale = k.value(), nil, false
}

func (k *keyState) remove() {
	k.present, k.content, k.encoded, k.encodedIsStale, k.keepsExpiry = false, nil, "", false, false
}

// size returns the bytes of the encoded value.
func (k *keyState) size() int {
	if k.content != nil {
		return k.content.Size()
	}
	return len(k.encoded)
}

// elementCount returns the number of elements of a collection.
func (k *keyState) elementCount() int {
	if !k.present || k.content == nil && !contents.IsMarked(k.encoded) {
		return 0
	}
	if content, err := k.decode(); err == nil {
		return content.Len()
	}
	return 0
}

// isTooLarge reports whether a collection exceeds a limit.
func (k *keyState) isTooLarge() bool {
	return k.present && k.kind() != contents.TextKind.String() && (k.size() > maxValue || k.elementCount() > maxElements)
}

// restore restores an earlier state, and records that the error reply depends on the key.
func (k *keyState) restore(oldState keyState) {
	oldState.isUsed, oldState.replyDependsOn, oldState.content = k.isUsed, true, nil
	*k = oldState
}
