package lua

import (
	"errors"
	"testing"
	"time"

	"redlock-proxy/internal/lua/meter"
	"redlock-proxy/internal/lua/syntax"
)

// addExamples adds the examples as seeds.
func addExamples(f *testing.F) {
	for _, list := range examples {
		for _, e := range list {
			f.Add(e.chunk())
		}
	}
}

// FuzzCompile checks that any text compiles or has a compile error. The result must be the same if
// the text arrives byte by byte.
func FuzzCompile(f *testing.F) {
	addExamples(f)
	f.Fuzz(func(t *testing.T, source string) {
		m := meter.New(meter.Limits{}, 0)
		_, err := compile(source, "@fuzz")
		var compileErr *syntax.CompileError
		if err != nil && !errors.As(err, &compileErr) {
			t.Fatalf("%q: %v", source, err)
		}
		if _, literalsErr := syntax.Literals(&m, source, "@fuzz"); err == nil && literalsErr != nil {
			t.Errorf("%q: compiles, but for Literals %v", source, literalsErr)
		}
		if len(source) > 4096 {
			return
		}
		_, pieceErr := syntax.ParsePieces(&m, byteReader(source), "@fuzz")
		if (err == nil) != (pieceErr == nil) || err != nil && err.Error() != pieceErr.Error() {
			t.Errorf("%q: %v, byte by byte %v", source, err, pieceErr)
		}
	})
}

// byteReader returns a function that returns the next byte of a source at each call.
func byteReader(source string) func() string {
	return func() (piece string) {
		if source == "" {
			return ""
		}
		piece, source = source[:1], source[1:]
		return piece
	}
}

// FuzzShortPrograms checks that any program ends within its limits, and with a known error.
func FuzzShortPrograms(f *testing.F) {
	addExamples(f)
	f.Fuzz(func(t *testing.T, source string) {
		chunk, err := compile(source, "@fuzz")
		if err != nil {
			return
		}
		state := NewState(meter.Limits{Watch: startWatch(t, 50*time.Millisecond), Bytes: 2 << 20})
		var globals *Table
		if meter.Protect(func() error { globals = exampleGlobals(state, ""); return nil }) != nil {
			return // the time limit expired before the program began
		}
		_, err = state.Run(chunk, globals)
		var luaErr *Error
		if err != nil && !errors.As(err, &luaErr) && !errors.Is(err, meter.ErrTime) && !errors.Is(err, meter.ErrMemory) {
			t.Fatalf("%q: %v", source, err)
		}
	})
}
