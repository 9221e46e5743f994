// Package origin reads from whom a connection comes that a load balancer made for its client: the
// header of the PROXY protocol, version 1 or 2
// (https://www.haproxy.org/download/1.8/doc/proxy-protocol.txt), which stands before anything of
// the client's.
package origin
