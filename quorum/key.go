package quorum

// Key names a lock: the same name in another database is another lock.
type Key struct {
	// DB is the number of the database, as in SELECT.
	DB int
	// Name is the key as it stands on the masters.
	Name string
}

func namesOf(keys []Key) []string {
	names := make([]string, len(keys))
	for i, k := range keys {
		names[i] = k.Name
	}
	return names
}
