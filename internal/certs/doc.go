// Package certs reads certificates and keys from PEM files, and reads them again while they are in
// use: what a connection was made with stays its own, and the next one gets what is new.
package certs
