// Package marker defines the two texts about a master that proxies store on the master itself. A
// [Marker] states that the master votes, a [Record] that it is in quarantine.
package marker
