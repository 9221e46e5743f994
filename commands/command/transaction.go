package command

// Transaction is a client's transaction on lock keys, which the proxy carries out itself. The zero
// value is none, with nothing watched.
type Transaction struct {
	// Open is set from MULTI on.
	Open bool
	// Aborted is set when a command was refused: EXEC will be.
	Aborted bool
	// Down is why the upstream cannot be reached, where that began it: what commands on other keys
	// get.
	Down string
	// Queued are its commands, Size their bytes.
	Queued [][]string
	Size   int
	// Watched are the watched lock keys.
	Watched Watched
}

// Watched are the lock keys that a client watches, with their versions then.
type Watched struct {
	DB   int
	Keys map[string]string
	// Size are the bytes that they take.
	Size int
	// Changed is set when the client has changed one of them itself, or has found one that was
	// absent to hold something.
	Changed bool
}

// Begin takes the client into one.
func (t *Transaction) Begin() { *t = Transaction{Open: true, Watched: t.Watched} }

// End takes it out, and ends the watch on its keys.
func (t *Transaction) End() { *t = Transaction{} }

// Abort has EXEC be refused.
func (t *Transaction) Abort() { t.Aborted = true }

// Watching reports whether the client watches lock keys.
func (t *Transaction) Watching() bool { return len(t.Watched.Keys) > 0 }

// Unwatch forgets the keys that it watches.
func (t *Transaction) Unwatch() { t.Watched = Watched{} }

// watchedSize is what a watched key takes beside its name.
const watchedSize = 128

// Watch remembers the version of a key that is watched from now on, unless it already was.
func (w *Watched) Watch(key, version string) {
	if _, already := w.Keys[key]; !already {
		w.Keys[key] = version
		w.Size += len(key) + watchedSize
	}
}

// Finds takes down what a client has found to hold something: of a key that was absent when its
// watch began it knows by that, and nobody else does once the key is absent again.
func (t *Transaction) Finds(db int, keys []string) {
	w := &t.Watched
	for _, key := range keys {
		version, watches := w.Keys[key]
		w.Changed = w.Changed || watches && w.DB == db && version == ""
	}
}

// Changes takes down that the client has changed a key itself, because it must not change what it
// watches.
func (t *Transaction) Changes(db int, key string) {
	w := &t.Watched
	_, watches := w.Keys[key]
	w.Changed = w.Changed || watches && w.DB == db
}
