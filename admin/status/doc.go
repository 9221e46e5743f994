// Package status serves the status page of a proxy: a page with its own script and style, which
// requests data in JSON (docs/status.md) each second. The data come from the counts, the state and
// the log of the proxy. The package itself keeps only ten minutes of samples and an hour of events.
//
// The port has no login. So the page shows keys and clients only if the operator enables it
// (Options.Locks), and never tokens. A malicious web site cannot read the page through its
// visitors. The port accepts only GET and HEAD, allows no other origin, and answers only to its own
// host names (admin/host.go).
package status
