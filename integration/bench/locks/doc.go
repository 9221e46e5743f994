// Package locks runs the same work, lock and unlock, side by side on the same real Redis masters
// and prints Markdown tables:
//
//	go run ./integration/bench locks
//	go run ./integration/bench locks -client both -rounds 5 -seconds 5 -scenarios c64,one-key
//
// Contenders:
//
//	proxy      LOCK key token PX 10000, UNLOCK key token at the proxy, over all masters
//	redsync    go-redsync/redsync v4 on all masters, Lock and Unlock with its defaults
//	direct     SET key token NX PX 10000, compare-and-delete by EVALSHA at one of the masters
//	lockkeys   the commands of direct on lock keys of the same proxy
//	extending  one LOCK, and then EXTEND key token PX 10000 at the same proxy
//	reentrant  scripts of a reentrant lock on lock keys of the same proxy
//	telling    the same as reentrant, with a PUBLISH at each release
//	shared     the commands of proxy, with the word SHARED
//	slots      the commands of proxy, with the words SLOTS 16
//	readers    16 clients that lock one key at the same proxy with SHARED, in every scenario
//
// The contenders after direct run only on request. lockkeys, reentrant and telling poll in one-key.
//
// The clients of all contenders except redsync are of one kind: go-redis, or a minimal raw client
// (one connection per client, one write and one read per command). redsync always uses go-redis.
// Connections, tokens (16 random bytes per lock), keys and time limits are the same for all.
//
// The scenarios c1, c16, c64, c256 and c1024 have 1, 16, 64, 256 and 1024 clients, each with a key
// of its own.
// In one-key, 64 clients lock the same key: the proxy lets them wait (BLOCK), redsync retries with
// its default delays and unlimited tries, direct polls every 1 to 5 ms.
//
// Within a round, the contenders run one after the other. Each round begins with a different
// contender, and all figures are medians of the rounds. So noise affects all contenders equally. A
// run begins with a warm-up. Pairs per second counts the pairs that ended within the window.
// Latencies include all locks that clients requested within the window, even if they were granted
// after its end, so that long waits count. CPU is user and system time of the load generator, the
// proxy and all masters within the window, per pair. It is the best measure on a machine where
// these processes share the cores. The report warns if other processes used more than a tenth of a
// core.
//
// With -distance, links between all contenders and the masters delay the masters' replies by that
// time. Their CPU time counts as the load generator's. A link delays the pieces of a connection's
// replies one after the other.
//
// In one-key, a request counts as overtaken if another client's request was sent more than 10 ms
// later but granted earlier. The tolerance of 10 ms is for the difference between the order of
// arrival and the order of the clients' clocks, above all on a busy machine. "turns waited" is the
// number of grants to other clients between a request and its grant. If all requests are served in
// turn, it is the number of clients minus 1, plus or minus one.
//
// In one-key, a client that polls and requests the lock again right after its release mostly finds
// the key free. So the rates of redsync and direct come from one client that locks again and again
// while the other clients sleep, as the order of service shows. With -think, and in the scenario
// one-key-pause, each client pauses between its release and its next request.
package locks
