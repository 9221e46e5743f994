// Package redistest gives tests and benchmarks a real redis-server of their own, and a small client
// for raw RESP.
//
//	server := redistest.New(t, redistest.Options{})           // ends with the test
//	client, err := redistest.Dial(server.Addr(), time.Second)
//	reply, err := client.Do("SET", "k", "v", "PX", "10000")   // "OK"
//
// # Ways to fail
//
//	Server.Kill      connections are reset, new ones are refused, the data in memory is lost
//	Server.Restart   it starts again without its data; Revive: with the files of its directory
//	Server.Pause     connections stay open, the kernel accepts new ones, nothing answers; Continue resumes it
//	Server.RestoreFolder   it starts again with an older copy of its files (Server.CopyFolder)
//	Clock.Set        the clock of a server jumps while it runs; Clock.Drift: it is fast or slow
//
// Package faultlink has faults of the network. Functions without a testing.TB parameter can be used
// outside of tests: they return their errors.
package redistest
