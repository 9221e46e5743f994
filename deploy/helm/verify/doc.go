// Package verify holds what the Helm chart makes to Kubernetes' own types, and to the Prometheus
// operator's. It is a module of its own, which pins helm, too, so that the proxy does not depend on
// them: make kubernetes runs it.
package verify
