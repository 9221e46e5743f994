// Package idle measures the memory of the proxy for each idle client. It connects many clients,
// lets each send a few commands, and reads the resident memory of the proxy's process (RSS). RSS
// does not include the kernel's memory for the sockets:
//
//	go run ./integration/bench idle
//	go run ./integration/bench idle -clients 1000 -settle 2s
//
// Both ends of every connection need a file descriptor in their process, so `ulimit -Hn` must allow
// more than there are clients.
package idle
