// Package verify holds the Kubernetes manifests to Kubernetes' own types. It is a module of its own, so that the proxy does not
// depend on them: make kubernetes runs it.
package verify
