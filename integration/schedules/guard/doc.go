// Package guardschedules tests schedules in which a voting master has lost a lock that it had
// granted, but still looks intact. The server was replaced, its data were restored from a backup,
// or its clock jumped between two checks. In each schedule, an earlier version granted a lock to a
// client while another client held it. The tests need the build tag integration.
//
// The tests use the built proxy and real servers. They assume only two facts. The key of a lock on
// a master has the lock's name and a value that ends with the client's token. The names of the
// proxies' own keys begin with "redlock-proxy:".
package guardschedules
