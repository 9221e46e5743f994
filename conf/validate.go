package conf

import (
	"errors"
	"fmt"
	"strings"
)

// problem is one fault of a configuration whose author is not known yet.
type problem struct {
	setting string // the setting at fault
	index   int    // which of its values, if it is repeated
	text    string
	mirror  *problem // the same fault as seen from the other setting, to blame if only that one was given
}

// Validate returns every reason why the proxy could not run with c, joined, or nil. Each names the
// setting and the value, with passwords hidden. What [Load] returns is valid.
func (c Config) Validate() error {
	problems := append(c.singleProblems(), c.crossProblems()...)
	errs := make([]error, len(problems))
	for i, p := range problems {
		errs[i] = fmt.Errorf("%s: %s", p.setting, p.text)
	}
	return errors.Join(errs...)
}

// singleProblems are the faults of values taken each by itself.
func (c Config) singleProblems() []problem {
	var found []problem
	for _, s := range table {
		for i, value := range s.get(c) {
			if err := s.check(value); err != nil {
				found = append(found, problem{setting: s.Name, index: i, text: quoted(s, value, err)})
			}
		}
	}
	return found
}

// crossProblems are the faults of values that do not fit together.
func (c Config) crossProblems() []problem {
	var found []problem
	if len(c.Masters) == 0 {
		found = append(found, problem{setting: "master", text: "none is given, and at least one is needed (--master URL, REDLOCK_MASTER=URL, or a list in the file)"})
	}
	if c.MasterTimeout >= c.MaxTTL {
		timeout, ttl := formatDuration(c.MasterTimeout), formatDuration(c.MaxTTL)
		found = append(found, problem{
			setting: "master-timeout", text: fmt.Sprintf("%q is not shorter than max-ttl %q", timeout, ttl),
			mirror: &problem{setting: "max-ttl", text: fmt.Sprintf("%q is not longer than master-timeout %q", ttl, timeout)},
		})
	}
	if strings.HasPrefix(c.KeyPrefix, ownKeys) {
		found = append(found, problem{setting: "key-prefix", text: fmt.Sprintf("%q: keys that begin with %q are the proxies' own", c.KeyPrefix, ownKeys)})
	}
	if c.ClusterMode == "emulated" && c.Upstream != "" {
		found = append(found, problem{
			setting: "cluster-mode", text: `"emulated" is for a proxy without an upstream`,
			mirror: &problem{setting: "upstream", text: `a proxy with cluster-mode "emulated" has none`},
		})
	}
	found = append(found, c.movingProblems()...)
	found = append(found, c.loginProblems()...)
	found = append(found, c.certificateProblems()...)
	return append(found, c.sameMasters()...)
}

// movingProblems are what locks that are to be moved lack.
func (c Config) movingProblems() []problem {
	const name = "move-from-upstream"
	switch {
	case !c.MoveFromUpstream:
		return nil
	case c.Upstream == "":
		return []problem{{setting: name, text: "there is no upstream from which locks could be moved"}}
	case len(c.LockKeys) == 0:
		return []problem{{setting: name, text: "there are no lock-keys: these say which keys are moved"}}
	case !c.Guard:
		return []problem{{setting: name, text: "it needs the guard, by which proxies know where the locks are"}}
	}
	return nil
}

// ownKeys is before the names of the proxies' own keys on the masters; no lock has such a name.
const ownKeys = "redlock-proxy:"

// sameMasters finds masters that are given twice: they would have two votes.
func (c Config) sameMasters() []problem {
	var found []problem
	first := map[string]int{}
	_, sentinels, _ := ReadSentinel(c.Upstream)
	for i, master := range c.Masters {
		where := address(master)
		if c.Upstream != "" && !sentinels && where == address(c.Upstream) {
			found = append(found, problem{setting: "upstream", text: fmt.Sprintf("%q is a master, too: clients would change locks there", Redact(c.Upstream)),
				mirror: &problem{setting: "master", index: i, text: fmt.Sprintf("%q is the upstream, too: clients would change locks there", Redact(master))}})
		}
		if j, seen := first[where]; seen {
			found = append(found, problem{setting: "master", index: i,
				text: fmt.Sprintf("%q is the same master as %q: each has one vote", Redact(master), Redact(c.Masters[j]))})
			continue
		}
		first[where] = i
	}
	return found
}

// Warnings returns a sentence for everything in a valid c that works but is probably not meant.
func (c Config) Warnings() []string {
	var found []string
	n := len(c.Masters)
	switch {
	case n == 1:
		found = append(found, "masters: only 1 master: no failure is tolerated; use 3 or 5")
	case n > 0 && n%2 == 0:
		found = append(found, fmt.Sprintf("masters: %d masters tolerate no more failures than %d; use %d or %d", n, n-1, max(3, n-1), max(5, n+1)))
	}
	if c.ShareUpstreamLogin && c.LogsIn() {
		found = append(found, fmt.Sprintf("share-upstream-login: everybody who reaches %s uses the upstream with the login of its URL, without one of their own", c.Listen))
	}
	found = append(found, c.certificateWarnings()...)
	if c.AdminPprof && c.Admin == "" {
		found = append(found, "admin-pprof: there is no admin address on which profiles would be served")
	}
	if c.AdminLocks && c.Admin == "" {
		found = append(found, "admin-locks: there is no admin address on which locks would be shown")
	}
	if len(c.LockTags) > 0 && len(c.LockKeys) == 0 {
		found = append(found, "lock-tags: there are no lock-keys of which any could match")
	}
	for _, glob := range c.LockKeys {
		if strings.Trim(glob, "*") == "" {
			found = append(found, fmt.Sprintf("lock-keys: %q makes every key a lock key: the upstream gets no command on keys any more", glob))
		}
		if onlyPrefix(glob) {
			found = append(found, fmt.Sprintf("lock-keys: %q is one key: %q is every key that begins so", glob, glob+"*"))
		}
	}
	return found
}

// quoted is the wording of every error about one value.
func quoted(s Setting, value string, err error) string {
	return fmt.Sprintf("%q %v", s.shown(value), err)
}
