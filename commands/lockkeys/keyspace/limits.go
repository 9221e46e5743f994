package keyspace

// What a lock key holds at the most, for who brings contents from elsewhere.
const (
	// MaxValue bounds its bytes, as a contents.Content counts them.
	MaxValue = maxValue
	// MaxElements bounds the elements of a collection.
	MaxElements = maxElements
)
