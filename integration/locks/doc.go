// Package locks tests what LOCK, UNLOCK and EXTEND promise: the life of a lock, clients that wait
// and leave, masters that fail, rights, and that two clients never hold one lock at once. The tests
// need the build tag integration.
package locks
