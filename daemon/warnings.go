package daemon

import (
	"time"

	"redlock-proxy/proxy"
)

// warnCertificateValidity logs certificates that have expired, or are not valid yet.
func (d *daemon) warnCertificateValidity() {
	if err := d.certs.ValidityError(time.Now()); err != nil {
		d.log.Warn("clients or servers may refuse a certificate", "cause", err)
	}
}

// OpenUsersWarning is the warning that clients need no login, because the user default is open.
const OpenUsersWarning = "acl-file: clients without a login have all permissions of user default; " +
	"to require a login, add \"user default off\""

// warnOpenUsers logs the warning OpenUsersWarning.
func (d *daemon) warnOpenUsers() {
	if d.users != nil && d.users.IsOpen() {
		d.log.Warn(OpenUsersWarning)
	}
}

// warnProtectedMode logs that clients from other machines will be refused.
func (d *daemon) warnProtectedMode() {
	if d.server.IsProtected() && !proxy.IsLoopback(d.listener.Addr()) {
		d.log.Warn("protected-mode: no login is required, so clients from other machines are refused",
			"listen", d.listener.Addr().String())
	}
}
