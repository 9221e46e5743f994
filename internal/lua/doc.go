// Package lua runs Lua 5.1 as the C implementation runs it, with the same values and error texts,
// within limits that a script cannot pass.
//
//	var dog meter.Watchdog // one for all runs
//	var watch meter.Watch
//	watch.Start(ctx, &dog, time.Second, 0)
//	defer watch.Stop()
//	limits := meter.Limits{Bytes: 16 << 20, Watch: &watch}
//
//	m := meter.New(limits, 0)
//	tree, err := syntax.Parse(&m, "return 1 + x", "@name") // a *syntax.CompileError
//	chunk := lua.Compile(&m, tree)
//
//	state := lua.NewState(limits)
//	globals := state.NewTable()
//	state.Set(globals, "x", 2.0)
//	value, err := state.Run(chunk, globals) // 3.0
//
// A [Chunk] is immutable and safe for concurrent use; so is a table that was frozen. A [State] is
// one run, and nothing outlives it. Functions of Go get a [Call]; a [Builder] makes libraries of
// them that all runs share. The package and those below it import nothing else of this module.
//
// # What is metered
//
// The package is made for short scripts of strangers. Package meter counts what blocks and library
// functions do, calls, and the bytes that a run allocates, where the language spends them. A run
// that exceeds a limit ends, whatever the script protects with pcall:
//
//   - Bytes limits all that is allocated, also what is freed on the way.
//   - Depth limits how deep calls nest, and so Go's stack. It is an error of Lua, "stack overflow",
//     as in C.
//   - Watch ends a run from outside: when its time is over, or its context ends. A watchdog raises
//     a flag, which each charge reads; so the end of a run rests on no charge being right.
//   - Pace lets large runs share the machine.
//
// Parsing and compiling are metered in the same way. In gopher-lua one assignment, t[67000000] = 1,
// allocates gigabytes that nothing around it can count or prevent, and error texts and numbers in
// strings differ from those of C.
//
// # What it has
//
// The whole language, and of its library ([Standard]): assert, collectgarbage, error, gcinfo,
// getmetatable, ipairs, load, loadstring, next, pairs, rawequal, rawget, rawset, select,
// setmetatable, tonumber, tostring, type, unpack, xpcall, and the tables string, table and math.
// pcall is for the host to give, with [Call.Protected], and so is math.random. Package structlib
// has the library struct, which packs numbers and texts into strings.
//
// The examples by area (examples_*_test.go) say what it does, with what Redis 7.0 answers to each;
// under the build tag integration they are held against a redis-server. Of the official tests of
// Lua 5.1 (REDLOCK_LUA_TESTS=their directory) the 17 files that are not about files, debugging and
// the API in C pass: nine as they are, eight without the parts that official_test.go names.
//
// # What it lacks
//
// Coroutines, io, os, debug, modules, print, setfenv and getfenv, newproxy, string.dump and
// precompiled chunks, __gc and weak tables. There is no clock. The digits of logarithms are those
// of Go; pairs goes through a table in an order of its own ([Table]), as table.sort has equal
// elements.
//
// # Where to begin reading
//
// Package syntax makes a tree of a source. That becomes a tree of Go functions, one per expression
// and statement (code*.go), whose local variables are slots of their call: call.go and state.go run
// them. Package clib has what C says of numbers and characters, package pattern the patterns of
// Lua.
package lua
