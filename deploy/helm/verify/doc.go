// Package verify checks the output of the Helm chart against the types of Kubernetes and of the
// Prometheus operator. It is a module of its own, so that the proxy depends neither on these types
// nor on helm, whose version it pins. "make kubernetes" runs it.
package verify
