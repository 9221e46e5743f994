// Package acl implements the permissions of the proxy's own users, in the form of Redis' ACL file:
//
//	user default off
//	user app on #<SHA-256 of its password> ~lock:* +@all -@dangerous
//
// [Parse] reads such a file into a [Set] of users. [User.Check] decides whether a user may send a
// command. The package does no I/O, and its values are never changed. The syntax of the file, the
// errors and the decisions are those of Redis 7.0; differential tests compare them with a
// redis-server. The differences are:
//
//   - Unknown commands, subcommands, and keys of a module's command are only for users with all
//     permissions.
//   - Removing a category (-@write) also removes the commands of modules and of later versions of
//     Redis whose categories are not known.
//   - A user must have a name.
package acl
