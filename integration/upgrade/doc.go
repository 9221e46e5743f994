// Package upgrade has proxies of earlier versions, built from the history, beside those of now, on
// the same masters: make upgrades.
package upgrade
