package commands

import (
	"context"
	"fmt"
	"sync"
	"time"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/script"
	"redlock-proxy/commands/script/names"
)

// Functions tells of the functions that the upstream has.
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
	libraries map[string][]*names.Names // by function, in lower case; nil: not read yet
	at        time.Time
}

// known is what was read, if that is still taken to be true.
func (f *functions) known() (libraries map[string][]*names.Names, ok bool) {
	now := f.now()
	f.mu.Lock()
	defer f.mu.Unlock()
	age := now.Sub(f.at)
	return f.libraries, f.libraries != nil && age >= 0 && age < functionsTime
}

// read reads them, unless another did in the meantime.
func (f *functions) read(ctx context.Context) (map[string][]*names.Names, error) {
	if libraries, ok := f.known(); ok {
		return libraries, nil
	}
	began := f.now()
	all, err := f.upstream.Libraries(ctx)
	if err != nil {
		return nil, err
	}
	libraries := map[string][]*names.Names{}
	for _, library := range all {
		n := names.OfLibrary(library.Code)
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

// isFunction is true of the commands that call a function of the upstream's.
func isFunction(name string) bool { return name == "fcall" || name == "fcall_ro" }

// functionWithoutLockKeys is the decision about a FCALL among whose keys there is no lock key.
func (r *router) functionWithoutLockKeys(name string, words [][]byte) Decision {
	if _, ok := script.KeyCount(words, len(words)); !ok || r.functions.upstream == nil {
		return Decision{}
	}
	libraries, ok := r.functions.known()
	if !ok {
		return r.mustLearn(name)
	}
	return r.decideFunction(name, words, libraries)
}

// decideFunction refuses a function that may use a lock key.
func (r *router) decideFunction(name string, words [][]byte, libraries map[string][]*names.Names) Decision {
	n, _ := script.KeyCount(words, len(words))
	search := names.Search{IsLock: r.lockKeys.Match, Keys: words[3 : 3+n], Argv: words[3+n:]}
	for _, library := range libraries[syntax.Folded(words[1])] {
		if search.Finds(library) {
			return refuse(name, fmt.Sprintf("ERR '%s' of '%s': its library, or an argument, names a lock key; functions run on the upstream alone, lock keys stand on the lock masters; send a script (EVAL)", name, syntax.Shown(words[1])))
		}
	}
	return Decision{}
}

// functionAhead is scriptAhead for a FCALL.
func (r *router) functionAhead(ctx context.Context, words, given, argv [][]byte) (locked, watched bool) {
	if r.functions.upstream == nil {
		return false, false
	}
	libraries, err := r.functions.read(ctx)
	if err != nil {
		return true, false
	}
	search := names.Search{IsLock: r.lockKeys.Match, Keys: given, Argv: argv, More: true}
	for _, library := range libraries[syntax.Folded(words[1])] {
		locked = locked || search.Finds(library)
		watched = watched || library.UsesArguments()
	}
	return locked, watched
}
