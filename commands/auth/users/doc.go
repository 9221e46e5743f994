// Package users keeps the users of the proxy's own: who there is, by a file that is read again on
// demand ([Users.Reload]), who a client is ([Login]), and what they are asked about themselves
// (ACL). Rules and passwords are package acl's.
//
// A client's rights are looked up at each command, so that they follow the file at once. A client
// whose login would not be taken any more, because its user is gone or off, or its password no
// longer one of the user's, is nobody from then on, and whoever watches ([Users.Watch]) is notified
// to end its connection.
package users
