package daemon

import (
	"time"

	"redlock-proxy/proxy"
)

// warnUntimely logs certificates that have expired, or are not valid yet.
func (d *daemon) warnUntimely() {
	if err := d.certs.Untimely(time.Now()); err != nil {
		d.log.Warn("clients or servers may refuse a certificate", "cause", err)
	}
}

// OpenUsers is the warning about a user default that needs no login.
const OpenUsers = "acl-file: clients that do not log in are the user default, with its rights, " +
	"which are all rights unless the file restricts them; to require a login, add the line: user default off"

// warnOpen logs the warning OpenUsers.
func (d *daemon) warnOpen() {
	if d.users != nil && d.users.IsOpen() {
		d.log.Warn(OpenUsers)
	}
}

// warnProtected logs that clients from other machines will be refused.
func (d *daemon) warnProtected() {
	if d.server.IsProtected() && !proxy.IsLoopback(d.listener.Addr()) {
		d.log.Warn("protected-mode: no login is required, so clients from other machines are refused",
			"listen", d.listener.Addr().String())
	}
}
