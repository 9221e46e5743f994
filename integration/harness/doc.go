// Package harness runs the real things that tests and benchmarks need: redis-server processes that can be killed and stopped,
// the built proxy, any other server, a network link that can be cut, and a small client that speaks raw RESP.
//
//	masters, err := harness.StartMasters(5)      // ErrNoRedis says how to install redis-server
//	defer harness.CloseAll(masters)
//
//	link, err := harness.NewLink(masters[0].Addr())
//	defer link.Close()
//
//	proxy, err := harness.StartProxy(harness.ProxyOptions{Masters: []string{"redis://" + link.Addr(), masters[1].URL(), masters[2].URL()}})
//	defer proxy.Close()
//
//	client, err := harness.Dial(proxy.Addr(), time.Second)
//	reply, err := client.Do("LOCK", "k", "t", "PX", "10000") // int64
//
//	link.Cut()         // the master is unreachable: nothing arrives, nothing is refused
//	masters[1].Pause() // the master hangs
//	masters[2].Kill()  // the master is gone
//
// # Ways to fail
//
//	Redis.Kill      connections are reset, new ones are refused, the data is lost
//	Redis.Restart   the server starts again without its data; Revive: with what it had written to its directory
//	Redis.Pause     connections stand, the kernel accepts new ones, nothing answers; Continue goes on where it stopped
//	Link.Cut        the same, seen from one side only: the master is well, the way to it is not
//	Link.Refuse     new connections are refused and old ones reset, but the master lives and keeps its data
//	Link.Reset      the connections of this moment are reset, new ones succeed
//
// Nothing here needs a *testing.T: every function returns its error, so that a benchmark or a program can use it as well.
// Children are killed when this process ends, however it ends (on Linux; elsewhere only by Close).
package harness
