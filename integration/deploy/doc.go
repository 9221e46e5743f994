// Package deploy holds the files of deploy/ to the programs that they are for: the unit to systemd,
// the alerts and the dashboard to Prometheus, and, with the tag helm, which make kubernetes gives,
// the Helm chart to the proxy and to Redis. The tests need the build tag integration.
package deploy
