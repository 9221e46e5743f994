// Package idle measures what an idle client costs the proxy: it connects many, lets each do a
// little, and reads the resident memory of the proxy's process (RSS; what the kernel holds for the
// sockets is not in it):
//
//	go run ./integration/bench idle
//	go run ./integration/bench idle -clients 1000 -settle 2s
//
// Both ends of every connection need a file descriptor in their process, so `ulimit -Hn` must allow
// more than there are clients.
package idle
