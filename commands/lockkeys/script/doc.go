// Package script runs scripts of Redis clients in the proxy: what EVAL and EVALSHA do where the
// keys are lock keys. A script sees what it sees in Redis 7.0 and gets the same replies and error
// texts; its redis.call goes to a function of the caller's.
//
//	share := script.Share{Pace: pace, Allowance: &script.Allowance{}}
//	s, err := script.Compile(ctx, body, share)   // err.Error() is the error reply
//	reply, err := s.Run(ctx, script.Input{Keys: keys, Argv: args, Call: call, Share: share})
//
// A run has no clock and no randomness, and nothing of it is left for the next, so the same script
// on the same replies gives the same reply. It is bounded (Limits and Share), and so is its
// compilation; what is over a limit ends with a *LimitError. Runs share the machine by a Pace, so
// that none keeps others, or anything else, from running. What a run does is charged, for that. Its
// end rests on no charge: a watchdog (package meter) counts its time and looks whether its context
// has ended, and every block and every charge reads the watchdog's flag.
//
// # Where it differs from Redis 7.0
//
//   - coroutines, bit, cjson's functions other than encode and decode, and string.dump are there,
//     but are errors that say so: no lock library's script calls them (below). cmsgpack and
//     __redis__err__handler are no global variables.
//   - math.random has another generator, PCG, which begins with the seed 0 in every run, as Redis'
//     did before 7; Redis 7 goes on from script to script.
//   - error({}) and other tables without a text in err are "ERR unknown error"; Redis 7.0.15
//     crashes.
//   - After redis.setresp(3) true and false are answered as 1 and 0 also to a client of RESP3, and
//     a big number and a verbatim string as bulk strings.
//   - A reply that nests deeper than 128, such as a table that contains itself, is an error. So are
//     calls, and patterns, that nest deeper than Go's stack should grow: some 1,300 calls, under a
//     Pace.
//   - pairs and next go through 1, 2, 3 … and then through the other keys in the order in which
//     they came, and cjson.encode writes objects so; Redis' order is that of C's hash table. # of a
//     table with holes can be another of its borders.
//   - table.sort leaves equal elements in another order, and a comparison that is no order is never
//     an error.
//   - Logarithms, exp and powers can differ in their last digits; so can logarithms of numbers
//     below 2^-1022 in more of them.
//   - The sign of a NaN, which tostring shows, can be another where both operands were NaN, and on
//     other machines than x86.
//   - Addresses (tostring of a table) count up from the same number in every run.
//   - A function that needs more than 250 registers of the C implementation is "too complex" there
//     and runs here.
//   - A source of more than some 350,000 tokens is refused.
//   - A chain of more than 2000 operators, calls or indices has "too many syntax levels".
//   - Of a command that is refused for two reasons, a script that only reads is told that it may
//     not write.
//   - An error that the C implementation blames on the line where an expression ends may name
//     another line of a statement of several.
//
// # What scripts of libraries call
//
// These are all functions that are called by the scripts in integration/clients, by Redisson's in
// integration/lockkeys, and by those of the client and lock libraries that were looked through:
// redis-py, python-redis-lock, redlock-rb, sidekiq-unique-jobs, Laravel, Symfony, node-redlock,
// BullMQ, redislock, redsync, rueidis, valkey-go and Redisson.
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
// What none of them calls needs to be no more than right.
package script
