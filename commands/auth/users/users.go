package users

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"

	"redlock-proxy/commands/auth/acl"
)

// maxFile bounds the file, in bytes.
const maxFile = 16 << 20

// Users are those of a file. They are safe for concurrent use.
type Users struct {
	path    string
	catalog *acl.Catalog
	log     *slog.Logger
	now     atomic.Pointer[acl.Set]
	slow    *throttle

	mu       sync.Mutex // held while others are adopted
	watchers map[*watcher]struct{}
}

type watcher struct {
	notify func(changed func(name string) bool)
}

// Load reads a file; the catalog is the commands that its rules may name. The error says what is
// wrong with it, by lines.
func Load(path string, catalog *acl.Catalog, log *slog.Logger) (*Users, error) {
	u := &Users{path: path, catalog: catalog, log: log, slow: newThrottle(), watchers: map[*watcher]struct{}{}}
	set, err := u.read()
	if err != nil {
		return nil, err
	}
	u.now.Store(set)
	return u, nil
}

func (u *Users) read() (*acl.Set, error) {
	file, err := os.Open(u.path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	switch {
	case err != nil:
		return nil, err
	case len(text) > maxFile:
		return nil, fmt.Errorf("%s holds more than %d bytes", u.path, maxFile)
	}
	return acl.Parse(u.path, string(text), u.catalog)
}

// Now are the users of now.
func (u *Users) Now() *acl.Set { return u.now.Load() }

// IsOpen reports whether clients are somebody without a login.
func (u *Users) IsOpen() bool { return u.Now().IsOpen() }

// Reload reads the file again. It is taken as a whole or, with the error, not at all.
func (u *Users) Reload() error {
	use, _, err := u.Prepare()
	if err == nil {
		use()
	}
	return err
}

// Prepare reads the file again and changes nothing: use has it hold. Renewed is set where it holds
// other users than now. The error says what is wrong with it, by lines.
func (u *Users) Prepare() (use func(), renewed bool, err error) {
	set, err := u.read()
	if err != nil {
		return nil, false, err
	}
	before := u.now.Load()
	set.After(before)
	return func() { u.adopt(set) }, count(set, changedSince(before, set)) > 0 || gone(before, set) > 0, nil
}

// adopt has users hold from now on.
func (u *Users) adopt(set *acl.Set) {
	u.mu.Lock()
	defer u.mu.Unlock()
	before := u.now.Load()
	set.After(before)
	u.now.Store(set)
	changed := changedSince(before, set)
	for w := range u.watchers {
		w.notify(changed)
	}
	u.log.Info("users are read again", "acl-file", u.path, "users", len(set.All()), "changed", count(set, changed), "gone", gone(before, set))
}

// changedSince says which users are others than before.
func changedSince(before, set *acl.Set) func(name string) bool {
	return func(name string) bool { return set.Find(name) != before.Find(name) }
}

func count(set *acl.Set, changed func(string) bool) (n int) {
	for _, user := range set.All() {
		if changed(user.Name) {
			n++
		}
	}
	return n
}

// gone is how many users there are no more.
func gone(before, set *acl.Set) (n int) {
	for _, user := range before.All() {
		if set.Find(user.Name) == nil {
			n++
		}
	}
	return n
}

// Watch has notify called after each change, with what says whether a user was changed, until stop
// is called. notify must not read the file again.
func (u *Users) Watch(notify func(changed func(name string) bool)) (stop func()) {
	u.mu.Lock()
	defer u.mu.Unlock()
	w := &watcher{notify}
	u.watchers[w] = struct{}{}
	return func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		delete(u.watchers, w)
	}
}
