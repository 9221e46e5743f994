// Package deploy tests the files of deploy/ with the programs that use them: the unit with systemd,
// and the alerts and the dashboard with Prometheus. With the tag helm, which make kubernetes sets,
// it tests the Helm chart with the proxy and Redis. The tests need the build tag integration.
package deploy
