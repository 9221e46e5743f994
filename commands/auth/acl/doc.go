// Package acl implements the permissions of the proxy's own users, in the form of Redis' ACL file:
//
//	user default off
//	user app on #<SHA-256 of its password> ~lock:* +@all -@dangerous
//
// [Parse] reads such a file into a [Set] of users. [User.Check] decides whether a user may send a
// command. The package does no I/O. Its values are immutable once they are in use. The syntax of
// the file, the errors and the decisions are as in Redis 7.0. Differential tests compare them with
// a redis-server. The package differs from Redis in these points:
//
//   - An unknown command or subcommand requires all permissions.
//   - A module's command that may use keys unknown to the proxy requires all keys and channels.
//   - Removing a category (-@write) also removes the commands of modules and of later versions of
//     Redis whose categories are not known.
//   - A user must have a name.
package acl
