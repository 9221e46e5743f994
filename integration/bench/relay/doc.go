// Package relay measures the cost of relaying commands through this proxy to an upstream Redis,
// compared with other proxies for the same redis-server, and prints Markdown tables:
//
//	go run ./integration/bench relay                   speed of GET and SET
//	go run ./integration/bench relay -idle             memory per idle client
//	go run ./integration/bench relay -connects 500000  memory and descriptors after many connects
//
// Contenders:
//
//	direct      redis-benchmark at the redis-server
//	proxy       this proxy, serve --upstream, with three idle masters for its locks
//	haproxy     HAProxy in TCP mode: it parses no commands, so it is the reference for a relay
//	nutcracker  twemproxy: it parses commands, and shares one connection between all clients
//
// Speed: one run is one redis-benchmark process with 50 clients, and with -P 1 or -P 16. With
// -reconnect, each request uses a new connection instead, and the figures have no goals. Within a
// round, the contenders run one after the other. Each round begins with a different contender, and
// all figures are medians of the rounds. So noise affects all contenders equally. A shorter round
// precedes all other rounds, and its figures are discarded. CPU is user and system time of the
// contender's process, and of the redis-server, during the run, per request. It is the best measure
// on a machine where load generator, contender and server share the cores. The report warns if
// other processes used more than a tenth of a core. HAProxy and this proxy get the same number of
// threads. p50 and p99 are from redis-benchmark.
//
// Idle clients have sent one GET each and have received its reply. The growth of the contender's
// resident memory, after a pause, is divided by the number of clients. It excludes the kernel's
// memory for sockets, which is the same for all contenders. If a process may not open two
// descriptors per client, there are fewer clients than requested, and the report shows their
// number.
//
// Clients that connect and disconnect send one PING each, and close the connection after the reply.
// The number of simultaneous connections is limited. After the first tenth, memory may grow by at
// most 8 MB. At the end, at most 2 more descriptors than before may be open. A leaked goroutine
// costs at least 2 KB for each connect. A leak of a few bytes is visible only after half a million
// connects.
package relay
