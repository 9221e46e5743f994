package eval

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"redlock-proxy/commands/catalog/syntax"
)

// Functions lists the functions of the upstream.
type Functions interface {
	// Libraries returns all libraries of functions.
	Libraries(ctx context.Context) ([]Library, error)
}

// Library is a library of functions.
type Library struct {
	// Functions holds the names of the functions.
	Functions []string
	// Code is the source of the library.
	Code string
}

// maxFunctionsAge limits the age of the cached functions, because the upstream's functions can
// change without this proxy.
const maxFunctionsAge = time.Second

// functions caches the names of keys in the upstream's functions. It is safe for concurrent use.
type functions struct {
	upstream Functions // nil if the proxy does not check functions
	now      func() time.Time

	mu        sync.Mutex
	libraries map[string][]*keyNames // by function, in lower case; nil before the first read
	readAt    time.Time
}

// cachedLibraries returns the result of the last read, if it is younger than maxFunctionsAge.
func (f *functions) cachedLibraries() (libraries map[string][]*keyNames, ok bool) {
	now := f.now()
	f.mu.Lock()
	defer f.mu.Unlock()
	age := now.Sub(f.readAt)
	return f.libraries, f.libraries != nil && age >= 0 && age < maxFunctionsAge
}

// read returns the names of keys by function. It reads the functions from the upstream, unless the
// result of the last read is young enough.
func (f *functions) read(ctx context.Context) (map[string][]*keyNames, error) {
	if libraries, ok := f.cachedLibraries(); ok {
		return libraries, nil
	}
	start := f.now()
	list, err := f.upstream.Libraries(ctx)
	if err != nil {
		return nil, err
	}
	libraries := map[string][]*keyNames{}
	for _, library := range list {
		n := namesOfLibrary(library.Code)
		for _, name := range library.Functions {
			name = syntax.LowerCString([]byte(name))
			libraries[name] = append(libraries[name], n)
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if start.After(f.readAt) {
		f.libraries, f.readAt = libraries, start
	}
	return libraries, nil
}

// IsFCall reports whether a command calls a function of the upstream.
func IsFCall(name string) bool { return name == "fcall" || name == "fcall_ro" }

// routeFunction implements Route for FCALL.
func (s *Scripts) routeFunction(words [][]byte) (target Target, refusal string) {
	if _, ok := syntax.KeyCount(words, len(words)); !ok || s.functions.upstream == nil {
		return Upstream, ""
	}
	libraries, ok := s.functions.cachedLibraries()
	if !ok {
		return Unknown, ""
	}
	return s.routeKnownFunction(words, libraries)
}

// resolveFunction implements ResolveScript for FCALL.
func (s *Scripts) resolveFunction(ctx context.Context, name string, words [][]byte) (target Target, refusal string) {
	libraries, err := s.functions.read(ctx)
	if err != nil {
		return Refused, fmt.Sprintf(
			"ERR cannot check whether '%s' of '%s' uses lock keys: cannot read the upstream's functions: %s",
			name, syntax.Excerpt(words[1]), err)
	}
	return s.routeKnownFunction(words, libraries)
}

// routeKnownFunction refuses a function that may use a lock key.
func (s *Scripts) routeKnownFunction(words [][]byte, libraries map[string][]*keyNames) (target Target, refusal string) {
	n, _ := syntax.KeyCount(words, len(words))
	keySearch := search{IsLockKey: s.opts.LockKeys.Match, Keys: words[3 : 3+n], Argv: words[3+n:]}
	if slices.ContainsFunc(libraries[syntax.LowerCString(words[1])], keySearch.findsLockKey) {
		return Refused, fmt.Sprintf("ERR '%s' of '%s' cannot use lock keys: its library or an argument names a lock key, "+
			"but functions run only on the upstream; send a script (EVAL)",
			syntax.Lower(words[0]), syntax.Excerpt(words[1]))
	}
	return Upstream, ""
}

// previewFunction implements Preview for FCALL.
func (s *Scripts) previewFunction(
	ctx context.Context, words, keyArgs, argv [][]byte,
) (notForUpstream, argsMayBeKeys bool) {
	if s.functions.upstream == nil {
		return false, false
	}
	libraries, err := s.functions.read(ctx)
	if err != nil {
		return true, false
	}
	keySearch := search{IsLockKey: s.opts.LockKeys.Match, Keys: keyArgs, Argv: argv, MoreFollow: true}
	for _, library := range libraries[syntax.LowerCString(words[1])] {
		notForUpstream = notForUpstream || keySearch.findsLockKey(library)
		argsMayBeKeys = argsMayBeKeys || library.usesArguments()
	}
	return notForUpstream, argsMayBeKeys
}
