// Package relay measures what the way through this proxy to an upstream Redis costs, beside other
// proxies in front of the same redis-server, and prints Markdown tables:
//
//	go run ./integration/bench relay                   speed: redis-benchmark, GET and SET, 50 clients, -P 1 and -P 16
//	go run ./integration/bench relay -idle             memory per idle client
//	go run ./integration/bench relay -connects 500000  clients that come and go: do memory and descriptors stay flat?
//
// Contenders:
//
//	direct      redis-benchmark at the redis-server
//	proxy       this proxy, serve --upstream, with three masters for its locks, which have nothing to do
//	haproxy     HAProxy in TCP mode: it looks at no byte, so it is the measure of a relay
//	nutcracker  twemproxy, which parses every command and shares one connection to the server among all clients
//
// How speed is measured: one run is one redis-benchmark process. Within a round the contenders run
// one after the other, each round begins with another one, and all figures are medians of the
// rounds, so that noise hits all equally. A shorter round before the first is thrown away. CPU is
// user and system time of the contender's process, and of the redis-server behind it, during the
// run, per request: the best measure on a machine where load generator, contender and server share
// the cores. What other processes took away is measured as well; the report warns of more than a
// tenth of a core. HAProxy and this proxy get the same number of threads. p50 and p99 are those
// that redis-benchmark prints.
//
// Idle clients have sent one GET each and had its reply. What their contender's process takes after
// a pause beyond what it took without them is divided among them. The kernel's memory for sockets
// is not in it, and is the same for all. Where a process may not have two descriptors per client,
// there are fewer clients than asked for, and the report says so.
//
// Clients that come and go connect, send PING and close when they have its reply, a bounded number
// of them at a time. Memory must not grow after the first tenth, and open descriptors must be as
// few afterwards as before. A goroutine that stays behind would show as at least 2 KB for each
// connect. A leak of a few bytes needs half a million connects to be seen.
package relay
