// Package script defines the keys that proxies keep on a master, and the scripts that read and
// change these keys.
package script
