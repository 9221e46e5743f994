// Package status is the page on which people see how a proxy does: one page with its own script and
// style, which asks for data in JSON (docs/status.md) each second. What it shows is what others
// count, know and log; kept here are only what rates need, ten minutes of it, and an hour of
// events.
//
// Whoever reaches the port may look. So keys of locks and clients are shown only where that is
// wanted (Options.Locks), tokens never; and a browser that was lured to another site is no way in:
// only GET, nothing for other origins, and no name but the proxy's own (host.go).
package status
