// Package certs reads certificates and keys from PEM files, and reads them again while they are in
// use. A connection keeps its certificates; later connections get the new certificates.
package certs
