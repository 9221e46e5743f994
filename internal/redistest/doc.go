// Package redistest gives tests and benchmarks a real redis-server of their own, and a small client
// that speaks raw RESP.
//
//	server := redistest.New(t, redistest.Options{})           // ends with the test
//	client, err := redistest.Dial(server.Addr(), time.Second)
//	reply, err := client.Do("SET", "k", "v", "PX", "10000")   // "OK"
//
// # Ways to fail
//
//	Server.Kill      connections are reset, new ones are refused, the data is lost
//	Server.Restart   it starts again without its data; Revive: with what it had written to its directory
//	Server.Pause     connections stand, the kernel accepts new ones, nothing answers; Continue goes on where it stopped
//	Server.SetBack   it starts again with an older copy of its files (Server.CopyFolder)
//	Clock.Set        the clock of a server jumps while it runs; Clock.Drift: it is fast or slow
//
// What can happen on the way to a server is in package faultlink. But for New and Absent, nothing
// here needs a test: every function returns its error.
package redistest
