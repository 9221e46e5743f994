// Package spec is what is known of the commands of Redis: how many words they have, which of these
// are keys, whether they write or block, and what they do to the connection that they are sent on.
// It is the only place that knows it; a test holds it to what a Redis says of itself.
package spec
