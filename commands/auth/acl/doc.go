// Package acl is what users of the proxy's own may do, in the form of Redis' ACL file:
//
//	user default off
//	user app on #<SHA-256 of its password> ~lock:* +@all -@dangerous
//
// [Parse] reads such a file into a [Set] of users, and [User.Check] says of the words of a command
// whether a user may send it. Nothing here does I/O, and nothing is changed once it was made. The
// words of the file, its errors and the answers are those of Redis 7.0; differential tests hold
// them to a redis-server. Where it differs:
//
//   - What is not known (a command, a subcommand, the keys of a module's command) is only for users
//     that may do everything.
//   - A category that is taken away (-@write) takes a later Redis' or a module's command with it
//     whose categories are not known.
//   - A user has a name.
package acl
