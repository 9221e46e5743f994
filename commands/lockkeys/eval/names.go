package eval

import (
	"slices"

	"redlock-proxy/commands/catalog/keys"
	"redlock-proxy/commands/catalog/spec"
	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/lockkeys/script"
	"redlock-proxy/commands/lockkeys/script/calls"
)

// keyNames describes the keys that a script uses in addition to its KEYS, as far as its source
// shows them. The names of these keys may also depend on the arguments of a call.
type keyNames struct {
	// shapes describes how the names are composed of literals and arguments.
	shapes []calls.Shape
	// incomplete is true if the script may use further keys. Then any literal or argument may be a
	// key.
	incomplete bool
	literals   []string
	// flushName is "flushdb" or "flushall" if the source calls this command, else "".
	flushName string
}

// flushCommand returns the command that removes all keys, or "" if the source calls none.
func (n *keyNames) flushCommand() string { return n.flushName }

// namesIn finds the names of keys in the calls of a script.
func namesIn(foundCalls calls.Calls) *keyNames {
	n := &keyNames{incomplete: foundCalls.Hidden, literals: foundCalls.Literals}
	for _, site := range foundCalls.Sites {
		if name := flushOf(site); name != "" {
			n.flushName = name
		}
		for _, shape := range keyShapes(site) {
			if len(shape) > 0 && shape[0].Kind == calls.UnknownPart {
				n.incomplete = true
			} else if !isGivenKey(shape) {
				n.shapes = append(n.shapes, shape)
			}
		}
	}
	return n
}

// namesOf returns the names of keys in a script.
func namesOf(s *script.Script) *keyNames {
	return s.Derive(func(c calls.Calls) any { return namesIn(c) }).(*keyNames)
}

// namesOfLibrary returns the names of keys in a library of functions. A library that does not
// compile may use any key.
func namesOfLibrary(code string) *keyNames {
	found, err := script.LibraryCalls(code)
	if err != nil {
		return &keyNames{incomplete: true}
	}
	return namesIn(found)
}

// withoutKeys returns the names for a call without KEYS: any name in the script may then be a key.
func (n *keyNames) withoutKeys() *keyNames {
	return &keyNames{shapes: n.shapes, incomplete: true, literals: n.literals, flushName: n.flushName}
}

// flushOf returns "flushdb" or "flushall" if a call may be this command, else "".
func flushOf(site calls.Site) string {
	if len(site.Args) == 0 {
		return ""
	}
	for _, name := range site.Args[0] {
		text, _ := literal(name)
		switch text = syntax.Lower(text); text {
		case "flushdb", "flushall":
			return text
		}
	}
	return ""
}

// isGivenKey reports whether a shape is an element of KEYS. The proxy checks KEYS separately.
func isGivenKey(s calls.Shape) bool {
	return len(s) == 1 && (s[0].Kind == calls.Key || s[0].Kind == calls.AnyKey)
}

// keyShapes returns the shapes of a call's possible keys. If the positions of the keys are unknown,
// it returns the shapes of all arguments.
func keyShapes(site calls.Site) (shapes []calls.Shape) {
	if len(site.Args) == 0 {
		return site.Rest
	}
	for _, name := range site.Args[0] {
		text, ok := literal(name)
		rule := spec.KeysOf([]byte(text))
		switch {
		case !ok || rule == nil && !spec.IsKeyless([]byte(text)):
			shapes = append(shapes, allShapes(site)...)
		case rule != nil:
			shapes = append(shapes, shapesOf(rule, site)...)
		}
	}
	return shapes
}

// maxLiteral limits the texts that literal returns. No command has a longer name.
const maxLiteral = 256

// literal returns the text of a shape that consists of literals only. ok is false if the text is long.
func literal(s calls.Shape) (text string, ok bool) {
	for _, part := range s {
		if part.Kind != calls.Literal || len(text)+len(part.Text) > maxLiteral {
			return "", false
		}
		text += part.Text
	}
	return text, true
}

func allShapes(site calls.Site) []calls.Shape {
	return append(slices.Concat(site.Args[1:]...), site.Rest...)
}

// shapesOf returns the shapes of the keys in a call of a command.
func shapesOf(r *keys.Rule, site calls.Site) (shapes []calls.Shape) {
	if r.IsFirstOnly() && len(site.Args) > 1 {
		return site.Args[1]
	}
	words := make([][]byte, len(site.Args))
	for i, arg := range site.Args {
		if len(arg) == 1 {
			if text, ok := literal(arg[0]); ok {
				words[i] = []byte(text)
			}
		}
	}
	if site.Rest != nil || !r.IsDetermined(words) {
		return allShapes(site)
	}
	places, _ := r.Places(words, len(words))
	for i := range places.All() {
		shapes = append(shapes, site.Args[i]...)
	}
	return shapes
}

// search finds lock keys among the names that a script or function uses when it is called with some
// arguments.
type search struct {
	// IsLockKey reports whether a name is a lock key.
	IsLockKey func(name []byte) bool
	// Keys and Argv hold the arguments of the call.
	Keys, Argv [][]byte
	// MoreFollow is true if the call has more arguments, which have not arrived yet.
	MoreFollow bool
}

// maxWork limits the work of one search, in bytes: those of the names, and comparisonWork for each.
const maxWork, comparisonWork = 1 << 28, 64

// findsLockKey reports whether one of the names may be a lock key. That is also true if finding out
// would take too much work: then the proxy runs a script itself, within its limits, and refuses a
// function.
func (s search) findsLockKey(n *keyNames) bool {
	if s.work(n) > maxWork {
		return true
	}
	if slices.ContainsFunc(n.shapes, func(shape calls.Shape) bool {
		return s.mayBeLockKey(nil, shape, "") || s.mayBeLockKey(nil, shape, "0")
	}) {
		return true
	}
	return n.incomplete && (slices.ContainsFunc(n.literals, func(text string) bool { return s.IsLockKey([]byte(text)) }) ||
		s.anyWordMayBeLockKey(nil, calls.Part{Kind: calls.AnyArgument}, s.Argv, nil, ""))
}

// work returns an upper bound of the work of a search.
func (s search) work(n *keyNames) (bytes int) {
	if len(n.shapes) == 0 {
		return 0
	}
	keyBytes, argBytes := sizeOf(s.Keys), sizeOf(s.Argv)
	for _, shape := range n.shapes {
		words, size := 1, 0
		for _, part := range shape {
			switch part.Kind {
			case calls.Literal:
				size += len(part.Text)
			case calls.Key:
				size += sizeOf(wordAt(s.Keys, part.Index))
			case calls.Argument:
				size += sizeOf(wordAt(s.Argv, part.Index))
			case calls.AnyKey:
				words, bytes = max(words, len(s.Keys)), bytes+keyBytes
			case calls.AnyArgument:
				words, bytes = max(words, len(s.Argv)), bytes+argBytes
			}
		}
		bytes += words * (comparisonWork + size*len(shape)) // each part copies the name so far
	}
	return bytes
}

func sizeOf(words [][]byte) (bytes int) {
	for _, w := range words {
		bytes += len(w)
	}
	return bytes
}

// mayBeLockKey reports whether a name that consists of prefix and the parts of shape may be a lock
// key. filler replaces unknown and missing parts.
func (s search) mayBeLockKey(prefix []byte, shape calls.Shape, filler string) bool {
	for i, part := range shape {
		prefix = prefix[:len(prefix):len(prefix)]
		switch part.Kind {
		case calls.Literal:
			prefix = append(prefix, part.Text...)
			continue
		case calls.UnknownPart:
		case calls.Key, calls.AnyKey:
			return s.anyWordMayBeLockKey(prefix, part, s.Keys, shape[i+1:], filler)
		default:
			if s.anyWordMayBeLockKey(prefix, part, s.Argv, shape[i+1:], filler) {
				return true
			}
			if !s.mayBeMissing(part) {
				return false
			}
		}
		prefix = append(prefix, filler...)
	}
	return s.IsLockKey(prefix)
}

// anyWordMayBeLockKey reports whether mayBeLockKey holds with one of the words as the next part. If
// several parts may be any word, it tries all words only for the first of these parts.
func (s search) anyWordMayBeLockKey(
	prefix []byte, part calls.Part, words [][]byte, rest calls.Shape, filler string,
) bool {
	if part.Kind == calls.Key || part.Kind == calls.Argument {
		words = wordAt(words, part.Index)
	} else {
		rest = withUnknownParts(rest)
	}
	return slices.ContainsFunc(words, func(word []byte) bool {
		return s.mayBeLockKey(append(prefix[:len(prefix):len(prefix)], word...), rest, filler)
	})
}

// withUnknownParts replaces each part that may be any of several words by an UnknownPart.
func withUnknownParts(shape calls.Shape) calls.Shape {
	parts := append(calls.Shape{}, shape...)
	for i, part := range parts {
		if part.Kind == calls.AnyKey || part.Kind == calls.AnyArgument {
			parts[i] = calls.Part{Kind: calls.UnknownPart}
		}
	}
	return parts
}

// mayBeMissing reports whether a part may be an argument that has not arrived yet.
func (s search) mayBeMissing(p calls.Part) bool {
	return s.MoreFollow && (p.Kind == calls.AnyArgument || p.Index > len(s.Argv))
}

// wordAt returns a slice with one word: the word with an index, counted from 1. The slice is empty
// if the index is too large.
func wordAt(words [][]byte, index int) [][]byte {
	if index > len(words) {
		return nil
	}
	return words[index-1 : index]
}

// usesArguments reports whether an argument may be the name of a key, or a part of it.
func (n *keyNames) usesArguments() bool {
	for _, shape := range n.shapes {
		for _, part := range shape {
			if part.Kind == calls.Argument || part.Kind == calls.AnyArgument {
				return true
			}
		}
	}
	return n.incomplete
}
