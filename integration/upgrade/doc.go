// Package upgrade tests proxies of earlier versions, which are built from the history, together
// with current proxies on the same masters: make upgrades.
package upgrade
