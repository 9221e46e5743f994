package syntax

// IsPublish reports whether a command, by its name in lower case, publishes a message.
func IsPublish(name string) bool { return name == "publish" || name == "spublish" }
