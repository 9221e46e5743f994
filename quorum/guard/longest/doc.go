// Package longest keeps what is known of the longest TTL in use: after that time nothing that a
// master forgot can still be held.
package longest
