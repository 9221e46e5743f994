// Package marker defines the two texts about a master that proxies store on the master itself. A
// [Marker] says that it votes, a [Record] that it is in quarantine.
package marker
