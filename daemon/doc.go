// Package daemon runs one proxy: it connects the parts, listens, serves until it is asked to stop,
// and drains. It reloads the configuration on demand, writes the log, serves the admin port, and
// notifies systemd.
package daemon
