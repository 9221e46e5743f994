// Package script has the keys of the proxies' own on a master, and the scripts that read and
// change them there.
package script
