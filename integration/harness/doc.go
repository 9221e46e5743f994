// Package harness starts what tests and benchmarks of the whole program need beside redis-servers:
// the proxy as it is built, other servers to compare it with, and loops that keep the processors
// busy.
//
//	masters, err := redistest.StartMasters(5)      // ErrNoRedis says how to install redis-server
//	defer redistest.CloseAll(masters)
//
//	link, err := faultlink.New(masters[0].Addr())
//	defer link.Close()
//
//	proxy, err := harness.StartProxy(harness.ProxyOptions{Masters: []string{"redis://" + link.Addr(), masters[1].URL(), masters[2].URL()}})
//	defer proxy.Close()
//
//	client, err := redistest.Dial(proxy.Addr(), time.Second)
//	reply, err := client.Do("LOCK", "k", "t", "PX", "10000") // int64
//
//	link.Cut()         // the master is unreachable: nothing arrives, nothing is refused
//	masters[1].Pause() // the master hangs
//	masters[2].Kill()  // the master is gone
//
// A proxy can be killed, paused, and suspended with its clock. Nothing here needs a *testing.T:
// every function returns its error, so that a benchmark can use it as well.
package harness
