package syntax

// IsPublish reports whether a command, in lower case, publishes.
func IsPublish(name string) bool { return name == "publish" || name == "spublish" }
