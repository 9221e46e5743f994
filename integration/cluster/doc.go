// Package cluster tests the proxy in front of a Redis Cluster: real servers, and real cluster
// clients that know only the proxy.
package cluster
