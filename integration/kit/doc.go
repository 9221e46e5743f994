// Package kit is what the rooms of integration tests have in common beside package harness: servers
// and proxies that end with their test, words for what a client says and must hear, looks at what
// the masters hold, and waiting for what must come.
//
//	func TestMain(m *testing.M) { kit.Main(m) }
//
//	f := kit.StartFleet(t)                                    // five masters, a proxy
//	client := kit.Connect(t, f.Proxies[0])
//	kit.WantGrant(t, client, "LOCK", "k", "t", "PX", "60000")
//	kit.Everywhere(t, f.Masters, func(master *redistest.Server) error { return kit.Stands(master, "0", "k", "t") })
//
// What is not there to be tested with, such as redis-server itself, skips the test, or fails it
// where everything is required.
package kit
