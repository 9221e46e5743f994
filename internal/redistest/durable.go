package redistest

// DurableArgs returns the arguments, for Options.ExtraArgs, with which a redis-server writes every
// change to its append-only file and to the disk before it answers. RestartWithData then restores
// all data.
func DurableArgs() []string { return []string{"--appendonly", "yes", "--appendfsync", "always"} }
