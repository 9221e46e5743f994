// Package metrics are the metrics of a proxy, for Prometheus. There are two kinds: what is counted
// elsewhere already, for INFO, is read when somebody asks for the metrics (Sources); what is
// counted nowhere else is counted here, by a [Locks] and a [Register] around those that do the
// work.
//
// No label has a value that a client chose: no key, no token, no address of a client. Those of
// masters are their addresses as configured, without logins.
package metrics
