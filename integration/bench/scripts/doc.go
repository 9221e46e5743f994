// Package scripts measures how endless scripts slow down other clients. It times LOCK of 16 clients
// alone, and while 50 clients send one endless script after another to a lock key, alternately in
// one run. It starts five masters and a proxy, and prints the ratio of the p99 of LOCK. It has no
// goal, because the figures depend on the machine.
//
//	go run ./integration/bench scripts -lockers 16 -scripts 50 -seconds 5 -rounds 3
package scripts
