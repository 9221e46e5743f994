// Package verify checks the output of the Helm chart against the types of Kubernetes and of the
// Prometheus operator. It is a separate module that pins the version of helm. So the proxy's module
// depends neither on helm nor on these types. "make kubernetes" runs the tests of this package.
package verify
