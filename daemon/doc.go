// Package daemon runs one proxy: it connects the parts, listens, serves clients until a signal
// stops it, and drains. It reloads the configuration on demand, writes the log, serves the admin
// port, and notifies systemd.
package daemon
