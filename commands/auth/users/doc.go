// Package users manages the proxy's own users. It reads them from a file, and reads the file again
// on demand ([Users.Reload]). It logs clients in ([Login]), and answers ACL. Package acl has the
// rules and passwords.
//
// Each command uses the client's current permissions, so that a reload takes effect immediately. A
// login ends when a reload removes or disables the user, or makes its password invalid. The client
// then has no permissions. After each reload, the package calls the functions registered by
// [Users.Watch]. These functions may close connections.
package users
