// Package lua runs Lua 5.1 with the same values and error texts as the C implementation, within
// limits that a script cannot exceed.
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
// A [Chunk] is immutable and safe for concurrent use, as is a frozen table. A [State] holds one
// run, and its objects must not be used after the run. Go functions get a [Call]. A [Builder] makes
// libraries of Go functions that all runs share. The package and the packages below it import no
// other package of this module.
//
// # Limits
//
// The package runs short scripts that are not trusted. Package meter counts allocated bytes, calls,
// and the work of blocks and library functions. A run that exceeds a limit other than Depth ends,
// even within pcall:
//
//   - Bytes limits all allocations, including memory that is freed later.
//   - Depth limits how deep calls nest, and so Go's stack. As in C, exceeding it is an error of
//     Lua, "stack overflow".
//   - Watch ends a run from outside, when its time limit expires or when its context ends. A
//     watchdog sets a flag, which each charge reads, so a run ends in time even if charges are
//     inaccurate.
//   - Pace lets large runs share the machine.
//
// Parsing and compiling are metered in the same way. gopher-lua, another implementation in Go,
// lacks such limits: one assignment, t[67000000] = 1, allocates gigabytes that the caller can
// neither count nor prevent. Its error texts and its numbers in strings differ from C's.
//
// # Contents
//
// The package implements the whole language, and this part of its library ([StandardEntries]):
// assert, collectgarbage, error, gcinfo, getmetatable, ipairs, load, loadstring, next, pairs,
// rawequal, rawget, rawset, select, setmetatable, tonumber, tostring, type, unpack, xpcall,
// _VERSION, and the tables string, table and math. The host provides pcall, with [Call.ProtectedCall], and
// math.random. Package structlib has the library struct, which packs numbers and texts into
// strings.
//
// The examples by area (examples_*_test.go) show the behaviour of the library, with the replies of
// Redis 7.0. With the build tag integration, a test compares the examples with a redis-server. The
// official tests of Lua 5.1 (REDLOCK_LUA_TESTS=their directory) have 17 files that do not test I/O,
// debugging or the API in C. All of them pass: nine unchanged, and eight without the parts that
// official_test.go names.
//
// # Limitations
//
// There are no coroutines, io, os, debug, modules, print, setfenv and getfenv, newproxy,
// string.dump and precompiled chunks, __gc and weak tables. There is no clock. The digits of
// logarithms are Go's. pairs visits a table in its own order ([Table]), and table.sort orders equal
// elements differently.
//
// # Where to begin reading
//
// Package syntax parses a source into a tree. Package lua compiles this tree to a tree of Go
// functions, one for each expression and statement (code*.go). The local variables of a Lua
// function are slots of its Call. call.go and state.go run the functions. Package clib has C's
// functions for numbers and characters. Package pattern has the patterns of Lua.
package lua
