// Package locks runs the same work, lock and unlock, side by side on the same real Redis masters
// and prints Markdown tables:
//
//	go run ./integration/bench locks
//	go run ./integration/bench locks -client both -rounds 5 -seconds 5 -scenarios c64,one-key
//
// Contenders:
//
//	proxy     LOCK key token PX 10000, UNLOCK key token at the proxy, which runs Redlock over all masters
//	lockkeys  SET key token NX PX 10000, compare-and-delete by EVALSHA at the same proxy, which takes the key for a lock key; not run
//	          unless asked for, and in one-key it polls
//	redsync   go-redsync/redsync v4 on all masters, Lock and Unlock with its defaults
//	direct    one of the masters alone: SET key token NX PX 10000, compare-and-delete by EVALSHA
//
// The clients of proxy, lockkeys and direct are of one kind, go-redis or a lean raw one (one
// connection per client, one write and one read per command). redsync always runs on go-redis.
// Connections, tokens (16 random bytes per lock), keys and the time limits are the same for all.
//
// Scenarios c1, c16, c64, c256 and c1024 have that many clients, each on a key of its own. In
// one-key, 64 clients want the same key: the proxy lets them wait (BLOCK), redsync retries as it
// does by default, without giving up, direct polls every 1 to 5 ms.
//
// How it measures: within a round the contenders run one after the other, each round begins with
// another one, and all figures are medians of the rounds, so that noise hits all equally. A run is
// warmed up first. Pairs per second counts the pairs that ended within the window; latencies are
// those of the locks that were asked for within it, also if they were granted after its end, so
// that long waits are not lost. CPU is user and system time of the load generator, the proxy and
// all masters within the window, per pair. It is the best measure on a machine where these share
// the cores. What other processes took away is measured as well; the report warns of more than a
// tenth of a core.
//
// With -distance the masters' answers are late by so much: a forwarder between all contenders and
// the masters sees to that, and its CPU counts as that of the load generator. It holds up one piece
// of a connection's answers after the other.
//
// In one-key a request counts as overtaken when another client's request was sent more than 10 ms
// later and yet was granted earlier. 10 ms are allowed because the order of arrival is not exactly
// that of the clients' clocks, on a busy machine least of all. "turns waited" is the number of
// grants to others between the request and its own grant: clients - 1, give or take one, when all
// are served in turn.
//
// Mind when reading one-key that a client that polls and asks again right after its release mostly
// finds the key free: redsync and direct owe their rates to one client at a time that locks again
// and again while the others sleep, as the order of service shows. With -think each client pauses
// between its release and its next request.
package locks
