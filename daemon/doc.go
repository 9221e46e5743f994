// Package daemon runs one proxy: it puts the parts together, listens, serves until it is asked to
// stop, and drains. It reads the configuration again on demand, writes the log, serves the admin
// port, and notifies systemd.
package daemon
