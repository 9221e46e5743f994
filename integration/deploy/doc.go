// Package deploy holds the files of deploy/ to the programs that they are for: the unit to systemd, the Kubernetes manifests to the proxy
// and to Redis, the alerts and the dashboard to Prometheus. Their form against Kubernetes' own types is checked by make kubernetes.
// The tests need the build tag integration.
package deploy
