package eval

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"redlock-proxy/commands/catalog/syntax"
)

// Functions lists the functions that the upstream has.
type Functions interface {
	// Libraries are all of them.
	Libraries(ctx context.Context) ([]Library, error)
}

// Library is a library of functions.
type Library struct {
	// Functions are their names.
	Functions []string
	// Code is the source.
	Code string
}

// functionsTime is for how long what was read of the upstream's functions is taken to be true: they
// can be changed there without this proxy.
const functionsTime = time.Second

// functions remember what the functions of the upstream name. They are safe for concurrent use.
type functions struct {
	upstream Functions // nil: they are not looked at
	now      func() time.Time

	mu        sync.Mutex
	libraries map[string][]*names // by function, in lower case; nil: not read yet
	at        time.Time
}

// known is what was read, if that is still taken to be true.
func (f *functions) known() (libraries map[string][]*names, ok bool) {
	now := f.now()
	f.mu.Lock()
	defer f.mu.Unlock()
	age := now.Sub(f.at)
	return f.libraries, f.libraries != nil && age >= 0 && age < functionsTime
}

// read reads them, unless another did in the meantime.
func (f *functions) read(ctx context.Context) (map[string][]*names, error) {
	if libraries, ok := f.known(); ok {
		return libraries, nil
	}
	began := f.now()
	all, err := f.upstream.Libraries(ctx)
	if err != nil {
		return nil, err
	}
	libraries := map[string][]*names{}
	for _, library := range all {
		n := namesOfLibrary(library.Code)
		for _, name := range library.Functions {
			name = syntax.Folded([]byte(name))
			libraries[name] = append(libraries[name], n)
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if began.After(f.at) {
		f.libraries, f.at = libraries, began
	}
	return libraries, nil
}

// IsFunction is true of the commands that call a function of the upstream's.
func IsFunction(name string) bool { return name == "fcall" || name == "fcall_ro" }

// routeFunction is Route of a FCALL.
func (s *Scripts) routeFunction(words [][]byte) (at Where, refusal string) {
	if _, ok := syntax.KeyCount(words, len(words)); !ok || s.functions.upstream == nil {
		return Upstream, ""
	}
	libraries, ok := s.functions.known()
	if !ok {
		return Unknown, ""
	}
	return s.placeFunction(words, libraries)
}

// learnFunction is Learn of a FCALL.
func (s *Scripts) learnFunction(ctx context.Context, name string, words [][]byte) (at Where, refusal string) {
	libraries, err := s.functions.read(ctx)
	if err != nil {
		return Nowhere, fmt.Sprintf("ERR '%s' of '%s': whether it uses lock keys is not known, as the upstream's functions cannot be read: %s", name, syntax.Shown(words[1]), err)
	}
	return s.placeFunction(words, libraries)
}

// placeFunction refuses a function that may use a lock key.
func (s *Scripts) placeFunction(words [][]byte, libraries map[string][]*names) (at Where, refusal string) {
	n, _ := syntax.KeyCount(words, len(words))
	named := search{IsLock: s.opts.LockKeys.Match, Keys: words[3 : 3+n], Argv: words[3+n:]}
	if slices.ContainsFunc(libraries[syntax.Folded(words[1])], named.finds) {
		return Nowhere, fmt.Sprintf("ERR '%s' of '%s': its library, or an argument, names a lock key; functions run on the upstream alone, lock keys are on the lock masters; send a script (EVAL)", syntax.Lower(words[0]), syntax.Shown(words[1]))
	}
	return Upstream, ""
}

// functionAhead is Ahead of a FCALL.
func (s *Scripts) functionAhead(ctx context.Context, words, given, argv [][]byte) (locked, watched bool) {
	if s.functions.upstream == nil {
		return false, false
	}
	libraries, err := s.functions.read(ctx)
	if err != nil {
		return true, false
	}
	named := search{IsLock: s.opts.LockKeys.Match, Keys: given, Argv: argv, More: true}
	for _, library := range libraries[syntax.Folded(words[1])] {
		locked = locked || named.finds(library)
		watched = watched || library.usesArguments()
	}
	return locked, watched
}
