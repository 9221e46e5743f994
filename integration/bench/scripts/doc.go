// Package scripts measures what endless scripts cost those who lock: LOCK of 16 clients alone, then
// beside 50 clients that send one endless script after another to a lock key, in one run, in turns.
// It starts five masters and a proxy, and prints how many times as long the slowest hundredth of
// the LOCKs took. It asserts nothing: how long something takes depends on the machine.
//
//	go run ./integration/bench scripts -lockers 16 -scripts 50 -seconds 5 -rounds 3
package scripts
