// Package kit has the helpers that the packages of integration tests share, in addition to package
// harness: servers and proxies that are closed when their test ends, functions that send commands
// and check replies, functions that check the keys of masters, and functions that wait.
//
//	func TestMain(m *testing.M) { kit.Main(m) }
//
//	f := kit.StartFleet(t)                                    // five masters, a proxy
//	client := kit.Connect(t, f.Proxies[0])
//	kit.WantGrant(t, client, "LOCK", "k", "t", "PX", "60000")
//	kit.Everywhere(t, f.Masters, func(master *redistest.Server) error { return kit.Stands(master, "0", "k", "t") })
//
// If a program that a test needs is missing, such as redis-server, the test is skipped, or fails if
// all tests are required.
package kit
