// Package kit holds the helpers that the packages of integration tests share, in addition to
// package harness. It starts servers and proxies that are closed when their test ends, sends
// commands, and checks replies and the keys of masters.
//
//	func TestMain(m *testing.M) { kit.Main(m) }
//
//	f := kit.StartFleet(t)                                    // five masters, a proxy
//	client := kit.Connect(t, f.Proxies[0])
//	kit.WantGrant(t, client, "LOCK", "k", "t", "PX", "60000")
//	kit.EachMaster(t, f.Masters, func(master *redistest.Server) error {
//		return kit.CheckToken(master, "0", "k", "t")
//	})
//
// If a program that a test needs is missing, such as redis-server, the helpers skip the test, or
// fail it if all tests are required.
package kit
