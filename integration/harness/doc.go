// Package harness starts the processes that, in addition to redis-servers, tests and benchmarks of
// the whole program need: the built proxy, other servers to compare it with, and loops that keep
// the processors busy.
//
//	masters, err := redistest.StartMasters(5)      // ErrNoRedis says how to install redis-server
//	defer redistest.CloseAll(masters)
//
//	link, err := faultlink.New(masters[0].Addr())
//	defer link.Close()
//
//	proxy, err := harness.StartProxy(harness.ProxyOptions{
//		Masters: []string{"redis://" + link.Addr(), masters[1].URL(), masters[2].URL()},
//	})
//	defer proxy.Close()
//
//	client, err := redistest.Dial(proxy.Addr(), time.Second)
//	reply, err := client.Do("LOCK", "k", "t", "PX", "10000") // int64
//
//	link.Cut()         // the master is unreachable: nothing arrives, nothing is refused
//	masters[1].Pause() // the master hangs
//	masters[2].Kill()  // the master has ended
//
// A proxy can be killed, paused, and suspended with its clock. No function needs a *testing.T: all
// functions return their errors. So benchmarks can use them, too.
package harness
