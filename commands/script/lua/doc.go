// Package lua runs Lua 5.1 as the C implementation runs it, with the same values and error texts. It is made for short scripts of
// strangers, so a run cannot outgrow its Limits: what blocks and library functions do, calls, and the bytes it allocates are counted where
// the language spends them, and a run that exceeds one ends, or is ended by its Watch, whatever the script protects with pcall. So does
// compiling.
//
//	chunk, err := lua.Compile(m, "return 1 + x", "@name")
//	state := lua.NewState(limits)
//	globals := state.NewTable()
//	state.Set(globals, "x", 2.0)
//	value, err := state.Run(chunk, globals) // 3.0
//
// A Chunk is immutable and safe for concurrent use; so is a table that was frozen. A State is one run, and nothing outlives it.
//
// Package syntax makes a tree of a source. That becomes a tree of Go functions, one per expression and statement (code*.go), whose
// local variables are slots of their call. Call (call.go) and State (state.go) are where to begin reading.
//
// It is not gopher-lua, in which one assignment, t[67000000] = 1, allocates gigabytes that nothing around it can count or prevent, and
// whose error texts and numbers in strings are its own.
//
// What it does is written down as examples by area (examples_*_test.go), with what Redis 7.0 answers to each; under the build tag
// integration they are held against a redis-server. Of the official tests of Lua 5.1 (REDLOCK_LUA_TESTS=their directory) the 17 files
// that are not about files, debugging and the API in C pass: nine as they are, eight without the parts that official_test.go names.
//
// # What scripts of libraries call
//
// These are all functions that are called by the scripts in integration/clients, by Redisson's in integration/lockkeys, and by those of the
// client and lock libraries that were looked through: redis-py, python-redis-lock, redlock-rb, sidekiq-unique-jobs, Laravel, Symfony,
// node-redlock, BullMQ, redislock, redsync, rueidis, valkey-go and Redisson.
//
//	assert, error, ipairs, next, pairs (of arrays alone), pcall, select, tonumber, tostring, type, unpack
//	string: byte, char, find, format, gsub, len, lower, match, rep, sub
//	table: concat, getn, insert, remove
//	math: abs, floor, max, min, sqrt, and the constant huge
//	cjson: decode, encode
//	struct: pack, unpack
//	cmsgpack: unpack (BullMQ), which scripts do not have in the proxy
//	redis: call, error_reply, log, pcall, replicate_commands, status_reply, and the constant LOG_DEBUG
//
// What none of them calls needs to be no more than right: coroutines are left out, the digits of logarithms are those of Go, and pairs goes
// through a table in an order of its own (Table), as table.sort has equal elements.
//
// Left out, because scripts in Redis do not have it: io, os, debug, modules, print, setfenv and getfenv, newproxy, string.dump and
// precompiled chunks, __gc and weak tables. There is no clock.
package lua
