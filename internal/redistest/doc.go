// Package redistest gives tests and benchmarks a real redis-server of their own, and a small client
// for raw RESP.
//
//	server := redistest.New(t, redistest.Options{})           // ends with the test
//	client, err := redistest.Dial(server.Addr(), time.Second)
//	reply, err := client.Do("SET", "k", "v", "PX", "10000")   // "OK"
//
// # Fault injection
//
//	Server.Kill             resets and refuses connections, and loses the data in memory
//	Server.Restart          starts the server again without its data
//	Server.RestartWithData  starts the server again with the files of its directory
//	Server.RestoreDir       starts the server again with an older copy of its files (Server.CopyDir)
//	Server.Pause            stops all replies; connections stay open, the kernel accepts more
//	Server.Continue         ends a pause
//	Clock.Set               makes the clock of a running server jump
//	Clock.Drift             makes the clock of a server run too fast or too slow
//
// Package faultlink simulates network faults. Functions without a testing.TB parameter can be used
// outside of tests: they return their errors.
package redistest
