package redistest

// Durable are the arguments with which a redis-server has written every change to its append-only
// file, and that to the disk, before it answers: for Options.ExtraArgs, beside Revive.
func Durable() []string { return []string{"--appendonly", "yes", "--appendfsync", "always"} }
