package upstream

import (
	"context"
	"errors"
	"strings"

	"redlock-proxy/commands/lockkeys/eval"
)

// errInvalidLibraries reports an unexpected reply to FUNCTION LIST.
var errInvalidLibraries = errors.New("FUNCTION LIST: unexpected reply")

// Libraries returns the function libraries of the upstream. It asks on the proxy's own connection,
// so that it also works within a client's transaction. An upstream without support for functions
// has no libraries. The error names the upstream.
func (u *Upstream) Libraries(ctx context.Context) ([]eval.Library, error) {
	ctx, cancel := context.WithTimeout(ctx, internalCommandTimeout)
	defer cancel()
	client, err := u.pool.client()
	if err != nil {
		return nil, u.Failure(err)
	}
	answer, err := client.Do(ctx, "FUNCTION", "LIST", "WITHCODE").Slice()
	switch {
	case err != nil && strings.HasPrefix(strings.ToLower(err.Error()), "err unknown command"):
		return nil, nil
	case err != nil:
		return nil, u.Failure(err)
	}
	libraries, ok := parseLibraries(answer)
	if !ok {
		return nil, u.Failure(errInvalidLibraries)
	}
	return libraries, nil
}

// parseLibraries parses a reply to FUNCTION LIST WITHCODE in RESP2.
func parseLibraries(answer []any) (libraries []eval.Library, ok bool) {
	for _, entry := range answer {
		fields := parsePairs(entry)
		code, ok := fields["library_code"].(string)
		functions, isList := fields["functions"].([]any)
		if !ok || !isList {
			return nil, false
		}
		library := eval.Library{Code: code}
		for _, function := range functions {
			name, ok := parsePairs(function)["name"].(string)
			if !ok {
				return nil, false
			}
			library.Functions = append(library.Functions, name)
		}
		libraries = append(libraries, library)
	}
	return libraries, true
}

// parsePairs parses a map in RESP2, which alternates names and values. For any other reply it
// returns an empty map.
func parsePairs(list any) map[string]any {
	fields := map[string]any{}
	elements, _ := list.([]any)
	for i := 0; i+1 < len(elements); i += 2 {
		if name, ok := elements[i].(string); ok {
			fields[name] = elements[i+1]
		}
	}
	return fields
}
