// Package idle measures the memory of the proxy for each idle client:
//
//	go run ./integration/bench idle
//	go run ./integration/bench idle -clients 1000 -settle 2s
//
// It connects many clients, lets each send a few commands, and reads the resident memory (RSS) of
// the proxy's process. RSS does not include the kernel's memory for the sockets.
//
// Each connection needs a file descriptor in the proxy and one in the benchmark. So, unless root
// runs the benchmark, `ulimit -Hn` must exceed the number of clients by at least 200.
package idle
