package keyspace

// Limits on the value of a lock key, for packages that move values from the upstream.
const (
	// MaxValue limits the bytes of a value, as contents.Content.Size counts them.
	MaxValue = maxValue
	// MaxElements limits the elements of a collection.
	MaxElements = maxElements
)
