// Package messages holds tests of messages between the clients of lock servers.
package messages
