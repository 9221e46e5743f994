// Package upgrade tests proxies of earlier versions, built from the history, together with current
// proxies on the same masters: make upgrades.
package upgrade
