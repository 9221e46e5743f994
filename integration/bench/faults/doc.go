// Package faults measures how long LOCK takes while two of five masters fail, beside the same
// without a fault, in one run:
//
//	go run ./integration/bench faults
//	go run ./integration/bench faults -clients 1,64 -rounds 5 -seconds 5
//
// Each client locks and unlocks a key of its own without a pause; only LOCK is timed. A fault
// begins with the time that is measured, so the moment in which it is noticed counts as well. All
// figures are medians of the rounds.
//
//	killed        SIGKILL: connections are reset, new ones are refused
//	stopped       SIGSTOP: connections stand, nothing answers
//	unreachable   two masters are reached over a relay in this process, which lets nothing through any more
//
// The relay costs time and CPU, so what is unreachable is compared with the same relay before it
// was cut. Mind that masters that are down leave their share of the CPU to the others: where all
// share few cores, faults can make LOCK faster.
package faults
