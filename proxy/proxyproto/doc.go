// Package proxyproto reads the header of the PROXY protocol, version 1 or 2
// (https://www.haproxy.org/download/1.8/doc/proxy-protocol.txt). A load balancer sends the header
// before the client's bytes, to report for which client it connects.
package proxyproto
