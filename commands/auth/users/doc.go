// Package users manages the proxy's own users. It reads them from a file, and reads the file again
// on demand ([Users.Reload]). It logs clients in ([Login]), and answers ACL. Package acl has the
// rules and passwords.
//
// The permissions of a client are looked up for each command, so that a change of the file is
// effective immediately. A login ends if it would no longer be accepted: the user is gone or off,
// or the password is no longer valid. From then on the client has no permissions, and the functions
// registered by [Users.Watch] are called, so that the connection can be closed.
package users
