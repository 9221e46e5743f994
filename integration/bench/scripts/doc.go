// Package scripts measures the effect of endless scripts on other clients. By default it times LOCK
// of 16 clients, alternately without and with 50 clients that send endless scripts, each on its own
// lock key. It starts five masters and a proxy, and prints the ratio of the p99 of LOCK. It has no
// goal, because the figures depend on the machine.
//
//	go run ./integration/bench scripts -lockers 16 -scripts 50 -seconds 5 -rounds 3
package scripts
