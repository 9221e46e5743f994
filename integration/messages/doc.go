// Package messages tests pub/sub between the clients of lock servers.
package messages
