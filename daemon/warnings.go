package daemon

import (
	"time"

	"redlock-proxy/proxy"
)

// warnUntimely logs certificates that clients or servers will not take.
func (d *daemon) warnUntimely() {
	if err := d.certs.Untimely(time.Now()); err != nil {
		d.log.Warn("clients or servers may refuse a certificate", "cause", err)
	}
}

// OpenUsers warns of a user that everybody is.
const OpenUsers = "acl-file: whoever connects is the user default, without a login, and may do what that one may; without a line of its own that is everything"

// warnOpen logs users that need no login.
func (d *daemon) warnOpen() {
	if d.users != nil && d.users.IsOpen() {
		d.log.Warn(OpenUsers)
	}
}

// warnProtected logs clients that will be turned away.
func (d *daemon) warnProtected() {
	if d.server.IsProtected() && !proxy.IsLoopback(d.listener.Addr()) {
		d.log.Warn("protected-mode: nobody has to log in, so clients from other machines are turned away", "listen", d.listener.Addr().String())
	}
}
