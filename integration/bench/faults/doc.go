// Package faults measures the duration of LOCK while two of five masters fail, and without a fault,
// in one run:
//
//	go run ./integration/bench faults
//	go run ./integration/bench faults -clients 1,64 -rounds 5 -seconds 5
//
// Each client locks and unlocks a key of its own without a pause; only LOCK is timed. A fault
// begins at the same time as the measurement, so that the time until the proxy notices the fault
// counts. All figures except errors, which are added up, are medians of the rounds.
//
//	killed        SIGKILL: connections are reset, new ones are refused
//	stopped       SIGSTOP: connections stay open, nothing answers
//	unreachable   a relay in this process, between the proxy and two masters, stops forwarding
//
// The relay costs time and CPU, so the case unreachable is compared with the same relay before the
// cut. Masters that are down use no CPU time: if all processes share a few cores, faults can make
// LOCK faster.
package faults
