// Package marker has the two texts by which proxies inform each other about a master, on that
// master itself: a [Marker] that it votes, a [Record] that it is in quarantine.
package marker
