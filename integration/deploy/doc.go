// Package deploy tests the files of deploy/ with the programs that use them: the unit with systemd,
// the alerts and the dashboard with Prometheus, and, with the tag helm that make kubernetes sets,
// the Helm chart with the proxy and Redis. The tests need the build tag integration.
package deploy
