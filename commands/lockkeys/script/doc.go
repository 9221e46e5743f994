// Package script runs scripts of Redis clients in the proxy, for EVAL and EVALSHA on lock keys. A
// script runs as in Redis 7.0, with the same replies and error texts. Its redis.call calls a
// function of the caller (Input.Call).
//
//	share := script.Share{Scheduler: scheduler, Allowance: &script.Allowance{}}
//	s, err := script.Compile(ctx, body, share)   // err.Error() is the error reply
//	reply, err := s.Run(ctx, script.Input{Keys: keys, Argv: args, Call: call, Share: share})
//
// A run has no clock and no randomness, and leaves nothing for the next run. So the same script
// with the same replies gives the same reply. Limits and Share limit runs and compilations, which
// end with a *LimitError at a limit. A Scheduler shares the machine between the runs, so that no
// run blocks another run, or the rest of the process. For this purpose, the interpreter charges
// each run for its work. Limits of time do not depend on the charges. A watchdog (package meter)
// measures the time of a run and checks whether its context has ended. Every block and every charge
// reads the watchdog's flag.
//
// # Differences from Redis 7.0
//
//   - coroutines, bit, cjson's functions other than encode and decode, and string.dump exist, but
//     calling them is an error: no script of a lock library calls them (below). cmsgpack and
//     __redis__err__handler are not global variables.
//   - math.random uses a different generator, PCG, which starts with the seed 0 in every run, as in
//     Redis before 7. In Redis 7 the state of the generator survives from script to script.
//   - error({}), or any other table without a text in err, gives "ERR unknown error"; Redis 7.0.15
//     crashes.
//   - After redis.setresp(3), true and false become 1 and 0 also for a client that speaks RESP3. A
//     big number and a verbatim string become bulk strings.
//   - A reply that nests deeper than 128, such as a table that contains itself, is an error. So are
//     calls and patterns that nest so deep that Go's stack would grow too large. With a Scheduler,
//     the limit is some 1,300 calls.
//   - pairs and next iterate over 1, 2, 3 … and then over the other keys in the order of their
//     insertion. cjson.encode writes objects in that order. Redis uses the order of C's hash table.
//     # of a table with holes can be a different border of the table.
//   - table.sort leaves equal elements in a different order, and an inconsistent comparison is
//     never an error.
//   - Logarithms, exp and powers can differ in their last digits; logarithms of numbers below
//     2^-1022 can differ in more digits.
//   - The sign of a NaN, which tostring shows, can differ if both operands were NaN, and on
//     machines other than x86.
//   - Addresses (tostring of a table) count up from the same number in every run.
//   - A function that needs more than 250 registers of the C implementation is "too complex" in
//     Redis, but runs in the proxy.
//   - The proxy refuses a source of more than some 350,000 tokens.
//   - A chain of more than 2000 operators, calls or indices has "too many syntax levels".
//   - If a read-only script calls a command that two rules forbid, the error says that the script
//     may not write.
//   - An error that the C implementation reports for the line where an expression ends may name a
//     different line of a statement of several lines.
//
// # What scripts of libraries call
//
// This list has all functions that the scripts in integration/clients and Redisson's scripts in
// integration/lockkeys call. It also has the functions that the scripts of these client and lock
// libraries call: redis-py, python-redis-lock, redlock-rb, sidekiq-unique-jobs, Laravel, Symfony,
// node-redlock, BullMQ, redislock, redsync, rueidis, valkey-go and Redisson.
//
//	assert, error, ipairs, next, pairs (of arrays alone), pcall, select, tonumber, tostring, type,
//	unpack
//	string: byte, char, find, format, gsub, len, lower, match, rep, sub
//	table: concat, getn, insert, remove
//	math: abs, floor, max, min, sqrt, and the constant huge
//	cjson: decode, encode
//	struct: pack, unpack
//	cmsgpack: unpack (BullMQ), which scripts do not have in the proxy
//	redis: call, error_reply, log, pcall, replicate_commands, status_reply, and the constant
//	LOG_DEBUG
//
// A function that no such script calls must be correct, but need not be fast.
package script
