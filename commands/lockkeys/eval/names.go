package eval

import (
	"slices"

	"redlock-proxy/commands/catalog/keys"
	"redlock-proxy/commands/catalog/spec"
	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/lockkeys/script"
	"redlock-proxy/commands/lockkeys/script/calls"
)

// names are the keys that a script uses besides those which it is given as KEYS: what can be told
// of them from its source. Its call decides the rest.
type names struct {
	// shapes are what the names are put together from.
	shapes []calls.Shape
	// hidden: there may be others. Then every literal and every argument may be one.
	hidden   bool
	literals []string
	// flushes is the command that removes all keys, if the script is seen to call one.
	flushes string
}

// flushCommand is the command that removes all keys, if the script is seen to call one; else it is
// empty.
func (n *names) flushCommand() string { return n.flushes }

// namesIn finds them in the calls of a script.
func namesIn(found calls.Calls) *names {
	n := &names{hidden: found.Hidden, literals: found.Literals}
	for _, site := range found.Sites {
		if name := flushOf(site); name != "" {
			n.flushes = name
		}
		for _, shape := range keyShapes(site) {
			if len(shape) > 0 && shape[0].Kind == calls.Unseen {
				n.hidden = true
			} else if !isGivenKey(shape) {
				n.shapes = append(n.shapes, shape)
			}
		}
	}
	return n
}

// namesOf are those of a script.
func namesOf(s *script.Script) *names {
	return s.Derived(func(c calls.Calls) any { return namesIn(c) }).(*names)
}

// namesOfLibrary are those of the code of a library of functions. What cannot be read is taken to
// hide everything.
func namesOfLibrary(code string) *names {
	found, err := script.LibraryCalls(code)
	if err != nil {
		return &names{hidden: true}
	}
	return namesIn(found)
}

// free are those of a script that is called without KEYS: it is taken to use whatever it names.
func (n *names) free() *names {
	return &names{shapes: n.shapes, hidden: true, literals: n.literals, flushes: n.flushes}
}

// flushOf is the command of a call that removes all keys, if it may be one.
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

// isGivenKey is true of KEYS[n], which whoever asks has looked at.
func isGivenKey(s calls.Shape) bool {
	return len(s) == 1 && (s[0].Kind == calls.Key || s[0].Kind == calls.AnyKey)
}

// keyShapes are what the keys of a call may be. Where it is not known which of its words are keys,
// all are.
func keyShapes(site calls.Site) (all []calls.Shape) {
	if len(site.Args) == 0 {
		return site.Rest
	}
	for _, name := range site.Args[0] {
		text, ok := literal(name)
		rule := spec.KeysOf([]byte(text))
		switch {
		case !ok || rule == nil && !spec.Keyless([]byte(text)):
			all = append(all, allShapes(site)...)
		case rule != nil:
			all = append(all, shapesOf(rule, site)...)
		}
	}
	return all
}

// literal is the text of a shape that is all written in the source.
func literal(s calls.Shape) (text string, ok bool) {
	for _, part := range s {
		if part.Kind != calls.Literal {
			return "", false
		}
		text += part.Text
	}
	return text, true
}

func allShapes(site calls.Site) []calls.Shape {
	return append(slices.Concat(site.Args[1:]...), site.Rest...)
}

// shapesOf are those of the keys of a call of the command.
func shapesOf(r *keys.Rule, site calls.Site) (all []calls.Shape) {
	if r.First() && len(site.Args) > 1 {
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
	if site.Rest != nil || !r.Tells(words) {
		return allShapes(site)
	}
	places, _ := r.Places(words, len(words))
	for i := range places.All() {
		all = append(all, site.Args[i]...)
	}
	return all
}

// search looks for lock keys among the names that a script uses when it is called so.
type search struct {
	// IsLock reports whether a name is that of a lock key.
	IsLock func(name []byte) bool
	// Keys and Argv are what it is given.
	Keys, Argv [][]byte
	// More is set where there are more arguments than these.
	More bool
}

// finds reports whether there is one.
func (s search) finds(n *names) bool {
	if slices.ContainsFunc(n.shapes, func(shape calls.Shape) bool { return s.fits(nil, shape, "") || s.fits(nil, shape, "0") }) {
		return true
	}
	return n.hidden && (slices.ContainsFunc(n.literals, func(text string) bool { return s.IsLock([]byte(text)) }) ||
		s.any(nil, calls.Part{Kind: calls.AnyArgument}, s.Argv, nil, ""))
}

// fits reports whether the name that begins with a text and goes on as the shape says may be that
// of a lock key, with a filler for what cannot be seen.
func (s search) fits(begin []byte, shape calls.Shape, filler string) bool {
	for i, part := range shape {
		begin = begin[:len(begin):len(begin)]
		switch part.Kind {
		case calls.Literal:
			begin = append(begin, part.Text...)
			continue
		case calls.Unseen:
		case calls.Key, calls.AnyKey:
			return s.any(begin, part, s.Keys, shape[i+1:], filler)
		default:
			if s.any(begin, part, s.Argv, shape[i+1:], filler) {
				return true
			}
			if !s.misses(part) {
				return false
			}
		}
		begin = append(begin, filler...)
	}
	return s.IsLock(begin)
}

// any is fits where the next part is one of these words. Of several parts that may be any of many,
// only the first one is tried with all of them.
func (s search) any(begin []byte, part calls.Part, words [][]byte, rest calls.Shape, filler string) bool {
	if part.Kind == calls.Key || part.Kind == calls.Argument {
		words = at(words, part.Index)
	} else {
		rest = blurred(rest)
	}
	return slices.ContainsFunc(words, func(word []byte) bool {
		return s.fits(append(begin[:len(begin):len(begin)], word...), rest, filler)
	})
}

// blurred has what may be any of many words be unseen.
func blurred(shape calls.Shape) calls.Shape {
	all := append(calls.Shape{}, shape...)
	for i, part := range all {
		if part.Kind == calls.AnyKey || part.Kind == calls.AnyArgument {
			all[i] = calls.Part{Kind: calls.Unseen}
		}
	}
	return all
}

// misses reports whether a part may be an argument that is not given.
func (s search) misses(p calls.Part) bool {
	return s.More && (p.Kind == calls.AnyArgument || p.Index > len(s.Argv))
}

// at is the word with an index that counts from 1, if there is one.
func at(words [][]byte, index int) [][]byte {
	if index > len(words) {
		return nil
	}
	return words[index-1 : index]
}

// usesArguments reports whether an argument may be the name of a key, or a part of it.
func (n *names) usesArguments() bool {
	for _, shape := range n.shapes {
		for _, part := range shape {
			if part.Kind == calls.Argument || part.Kind == calls.AnyArgument {
				return true
			}
		}
	}
	return n.hidden
}
