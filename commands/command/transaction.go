package command

// Transaction is a client's transaction on lock keys, which the proxy carries out itself. The zero
// value has no transaction and no watched key.
type Transaction struct {
	// Open is set after MULTI.
	Open bool
	// Aborted is set after the proxy has refused a command. EXEC will fail.
	Aborted bool
	// UpstreamError holds the error if MULTI could not reach the upstream. It is the reply to
	// commands on keys that are not lock keys.
	UpstreamError string
	// QueuedCommands holds the queued commands, QueuedBytes their size.
	QueuedCommands [][]string
	QueuedBytes    int
	// Watched holds the watched lock keys.
	Watched WatchedKeys
}

// WatchedKeys holds the lock keys that a client watches, with their versions at the time of WATCH.
type WatchedKeys struct {
	DB   int
	Keys map[string]string
	// Size is the size of the keys, in bytes.
	Size int
	// Changed is set when the client has changed one of the keys itself, or has found a value under
	// a key that was absent at the time of WATCH.
	Changed bool
}

// Begin starts a transaction.
func (t *Transaction) Begin() { *t = Transaction{Open: true, Watched: t.Watched} }

// End ends the transaction, and the watch on the keys.
func (t *Transaction) End() { *t = Transaction{} }

// Abort makes EXEC fail.
func (t *Transaction) Abort() { t.Aborted = true }

// HasWatchedKeys reports whether the client watches lock keys.
func (t *Transaction) HasWatchedKeys() bool { return len(t.Watched.Keys) > 0 }

// Unwatch ends the watch on the keys.
func (t *Transaction) Unwatch() { t.Watched = WatchedKeys{} }

// watchedKeyOverhead is the size of a watched key without its name, in bytes.
const watchedKeyOverhead = 128

// Watch starts to watch a key that has this version, unless the client watches it already.
func (w *WatchedKeys) Watch(key, version string) {
	if _, ok := w.Keys[key]; !ok {
		w.Keys[key] = version
		w.Size += len(key) + watchedKeyOverhead
	}
}

// NoteFound records that the client has found values under these keys. If a key was absent at the
// time of WATCH, this is the only trace of the change once the key is absent again.
func (t *Transaction) NoteFound(db int, keys []string) {
	w := &t.Watched
	for _, key := range keys {
		version, isWatched := w.Keys[key]
		w.Changed = w.Changed || isWatched && w.DB == db && version == ""
	}
}

// NoteChange records that the client has changed a key itself. A change of a key that it watches
// makes EXEC fail.
func (t *Transaction) NoteChange(db int, key string) {
	w := &t.Watched
	_, isWatched := w.Keys[key]
	w.Changed = w.Changed || isWatched && w.DB == db
}
