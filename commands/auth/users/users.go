package users

import (
	"log/slog"
	"sync"
	"sync/atomic"

	"redlock-proxy/commands/auth/acl"
	"redlock-proxy/internal/regular"
)

// maxFile limits the size of the file, in bytes.
const maxFile = 16 << 20

// Users holds the users of a file. It is safe for concurrent use.
type Users struct {
	path     string
	catalog  *acl.Catalog
	log      *slog.Logger
	current  atomic.Pointer[acl.Set]
	throttle *throttle

	mu       sync.Mutex // protects watchers, and serializes adopt
	watchers map[*watcher]struct{}
}

type watcher struct {
	notify func(changed func(name string) bool)
}

// Load reads a file. catalog holds the commands for its rules. The error lists mistakes by line.
func Load(path string, catalog *acl.Catalog, log *slog.Logger) (*Users, error) {
	u := &Users{path: path, catalog: catalog, log: log, throttle: newThrottle(), watchers: map[*watcher]struct{}{}}
	set, err := u.read()
	if err != nil {
		return nil, err
	}
	u.current.Store(set)
	return u, nil
}

func (u *Users) read() (*acl.Set, error) {
	text, err := regular.Read(u.path, maxFile)
	if err != nil {
		return nil, err
	}
	return acl.Parse(u.path, string(text), u.catalog)
}

// Current returns the current users.
func (u *Users) Current() *acl.Set { return u.current.Load() }

// IsOpen reports whether clients need no login.
func (u *Users) IsOpen() bool { return u.Current().IsOpen() }

// Reload reads the file again. After an error, the users are unchanged.
func (u *Users) Reload() error {
	adopt, _, err := u.Prepare()
	if err == nil {
		adopt()
	}
	return err
}

// Prepare reads the file again, but does not change the current users. adopt makes the new users
// the current ones. changed is set if they differ from the current users. The error lists the
// mistakes by line.
func (u *Users) Prepare() (adopt func(), changed bool, err error) {
	set, err := u.read()
	if err != nil {
		return nil, false, err
	}
	before := u.current.Load()
	set.ReuseUnchanged(before)
	return func() { u.adopt(set) }, countChanged(set, changedSince(before, set)) > 0 || countRemoved(before, set) > 0, nil
}

// adopt makes a set the current one, and notifies the watchers.
func (u *Users) adopt(set *acl.Set) {
	u.mu.Lock()
	defer u.mu.Unlock()
	before := u.current.Load()
	set.ReuseUnchanged(before)
	u.current.Store(set)
	changed := changedSince(before, set)
	for w := range u.watchers {
		w.notify(changed)
	}
	u.log.Info("users reloaded", "acl-file", u.path, "users", len(set.All()),
		"changed", countChanged(set, changed), "gone", countRemoved(before, set))
}

// changedSince returns a function that reports whether a user differs between the two sets.
func changedSince(before, set *acl.Set) func(name string) bool {
	return func(name string) bool { return set.Find(name) != before.Find(name) }
}

func countChanged(set *acl.Set, changed func(string) bool) (n int) {
	for _, user := range set.All() {
		if changed(user.Name) {
			n++
		}
	}
	return n
}

// countRemoved returns the number of users that are in before, but not in set.
func countRemoved(before, set *acl.Set) (n int) {
	for _, user := range before.All() {
		if set.Find(user.Name) == nil {
			n++
		}
	}
	return n
}

// Watch registers notify. After each reload, until stop is called, Users calls notify with a
// function that reports whether a user has changed. notify must not reload the users.
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
