// Package script has the keys that proxies keep on a master, and the scripts that read and change
// them.
package script
