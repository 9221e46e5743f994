package upstream

import (
	"context"
	"errors"
	"strings"

	"redlock-proxy/commands/lockkeys/eval"
)

// errOddLibraries says that the upstream's answer is none that FUNCTION LIST has.
var errOddLibraries = errors.New("FUNCTION LIST: unexpected answer")

// Libraries are the functions that the upstream has, asked for on a connection of the
// proxy's own, so that they can also be read within a client's transaction. An upstream
// without functions has none. The error names the upstream.
func (u *Upstream) Libraries(ctx context.Context) ([]eval.Library, error) {
	ctx, cancel := context.WithTimeout(ctx, ownTimeout)
	defer cancel()
	client, err := u.own.client()
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
	libraries, ok := librariesIn(answer)
	if !ok {
		return nil, u.Failure(errOddLibraries)
	}
	return libraries, nil
}

// librariesIn reads an answer of FUNCTION LIST WITHCODE in RESP2.
func librariesIn(answer []any) (all []eval.Library, ok bool) {
	for _, one := range answer {
		fields := pairs(one)
		code, ok := fields["library_code"].(string)
		functions, list := fields["functions"].([]any)
		if !ok || !list {
			return nil, false
		}
		library := eval.Library{Code: code}
		for _, function := range functions {
			name, ok := pairs(function)["name"].(string)
			if !ok {
				return nil, false
			}
			library.Functions = append(library.Functions, name)
		}
		all = append(all, library)
	}
	return all, true
}

// pairs reads a map as RESP2 has it: names and values in turn. Of anything else it is
// empty.
func pairs(list any) map[string]any {
	fields := map[string]any{}
	elements, _ := list.([]any)
	for i := 0; i+1 < len(elements); i += 2 {
		if name, ok := elements[i].(string); ok {
			fields[name] = elements[i+1]
		}
	}
	return fields
}
