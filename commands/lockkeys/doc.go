// Package lockkeys runs Redis' ordinary commands on lock keys. Each is a program over the quorum register (package program);
// those that wait for an arrival are in package blocking, those that see all keys in package allkeys.
package lockkeys
