// Package guardschedules are schedules in which a master loses a lock that it had granted, in ways
// that a master which was admitted, and looks well, does not show by itself: another life of the
// server behind the same address, data that were set back, clocks that jump between two looks. Each
// was once seen to let a rival have a lock that another client held. They need the build tag
// integration.
//
// The tests use the built proxy and real servers. Of what is on a master they assume only that a
// lock has the key's name and a value that ends with the client's token, and that the proxies' own
// keys begin with "redlock-proxy:".
package guardschedules
