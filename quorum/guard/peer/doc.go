// Package peer has what proxies announce of themselves on a master, and what they have
// differently that should be alike: majorities of different numbers of masters need not share one, and
// a proxy without the guard trusts masters that forgot.
package peer
