package conf

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// problem describes one fault of a configuration, without its source.
type problem struct {
	setting string // the setting at fault
	index   int    // the index of its value, if it is repeated
	text    string
	// counterpart describes the same conflict for the other setting. The loader reports it if only
	// that setting was given.
	counterpart *problem
}

// Validate returns every reason why the proxy could not run with c, joined, or nil. Each reason
// names the setting and the value, with passwords hidden. A configuration from [Load] is valid.
func (c Config) Validate() error {
	problems := append(c.invalidValues(), c.conflicts()...)
	errs := make([]error, len(problems))
	for i, p := range problems {
		errs[i] = fmt.Errorf("%s: %s", p.setting, p.text)
	}
	return errors.Join(errs...)
}

// invalidValues returns a problem for each invalid value.
func (c Config) invalidValues() []problem {
	var problems []problem
	for _, s := range settingsTable {
		for i, value := range s.get(c) {
			if err := s.check(value); err != nil {
				problems = append(problems, problem{setting: s.Name, index: i, text: valueProblem(s, value, err)})
			}
		}
	}
	return problems
}

// conflicts returns the conflicts between values.
func (c Config) conflicts() []problem {
	var found []problem
	if len(c.Masters) == 0 {
		found = append(found, problem{setting: "master", text: "no master is given: at least one is needed " +
			"(--master URL, REDLOCK_MASTER=URL, or a list in the file)"})
	}
	if c.MasterTimeout >= c.MaxTTL {
		timeout, ttl := formatDuration(c.MasterTimeout), formatDuration(c.MaxTTL)
		found = append(found, problem{
			setting: "master-timeout", text: fmt.Sprintf("%q is not shorter than max-ttl %q", timeout, ttl),
			counterpart: &problem{setting: "max-ttl",
				text: fmt.Sprintf("%q is not longer than master-timeout %q", ttl, timeout)},
		})
	}
	if strings.HasPrefix(c.KeyPrefix, proxyKeyPrefix) {
		found = append(found, problem{setting: "key-prefix",
			text: fmt.Sprintf("%q: keys that begin with %q are reserved for proxies", c.KeyPrefix, proxyKeyPrefix)})
	}
	if c.ClusterMode == "emulated" && c.Upstream != "" {
		found = append(found, problem{
			setting: "cluster-mode", text: `"emulated" needs a proxy without an upstream`,
			counterpart: &problem{setting: "upstream",
				text: `a proxy with cluster-mode "emulated" cannot have an upstream`},
		})
	}
	found = append(found, c.clusterProblems()...)
	found = append(found, c.movingProblems()...)
	found = append(found, c.lockClassProblems()...)
	found = append(found, c.loginProblems()...)
	found = append(found, c.certificateProblems()...)
	return append(found, c.duplicateMasters()...)
}

// movingProblems returns a problem if move-from-upstream lacks a setting that it requires.
func (c Config) movingProblems() []problem {
	const name = "move-from-upstream"
	switch {
	case !c.MoveFromUpstream:
		return nil
	case c.Upstream == "":
		return []problem{{setting: name, text: "needs an upstream from which the locks are moved"}}
	case len(c.LockKeys) == 0:
		return []problem{{setting: name, text: "needs lock-keys, which say which keys are moved"}}
	case !c.Guard:
		return []problem{{setting: name, text: "needs the guard, by which proxies know where the locks are"}}
	}
	return nil
}

// proxyKeyPrefix is the prefix of the proxies' own keys on the masters. No lock's key may begin
// with it.
const proxyKeyPrefix = "redlock-proxy:"

// duplicateMasters returns masters that are given twice, and would have two votes. It also returns
// an upstream that is a master.
func (c Config) duplicateMasters() []problem {
	var found []problem
	first := map[string]int{}
	upstreams := c.upstreamAddresses()
	for i, master := range c.Masters {
		where := canonicalAddress(master)
		if slices.Contains(upstreams, where) {
			found = append(found, problem{setting: "upstream",
				text: fmt.Sprintf("%q is a master, too: clients would change locks past the proxy", Redact(c.Upstream)),
				counterpart: &problem{setting: "master", index: i,
					text: fmt.Sprintf("%q is the upstream, too: clients would change locks past the proxy", Redact(master))}})
		}
		if j, seen := first[where]; seen {
			found = append(found, problem{setting: "master", index: i,
				text: fmt.Sprintf("%q is the same master as %q, which has one vote; name it once", Redact(master),
					Redact(c.Masters[j]))})
			continue
		}
		first[where] = i
	}
	return found
}

// upstreamAddresses returns the canonical addresses of the upstream, or of some of its nodes. It
// omits addresses that only Sentinels know.
func (c Config) upstreamAddresses() (all []string) {
	cluster, named, _ := ReadCluster(c.Upstream)
	switch {
	case named:
		for _, addr := range cluster.Seeds {
			all = append(all, canonicalAddress(cluster.URLAt(addr)))
		}
		return all
	case c.Upstream == "" || HasSentinels(c.Upstream):
		return nil
	}
	return []string{canonicalAddress(c.Upstream)}
}

// Warnings returns a sentence for each setting of a valid c that works but is probably a mistake.
func (c Config) Warnings() []string {
	found := slices.Clone(c.formerNameWarnings)
	n := len(c.Masters)
	switch {
	case n == 1:
		found = append(found, "masters: only 1 master: no failure is tolerated; use 3 or 5")
	case n > 0 && n%2 == 0:
		found = append(found, fmt.Sprintf("masters: %d masters tolerate no more failures than %d; use %d or %d", n, n-1,
			max(3, n-1), max(5, n+1)))
	}
	if c.ShareUpstreamLogin && c.LogsInToUpstream() {
		found = append(found, fmt.Sprintf("share-upstream-login: every client that reaches %s uses the upstream "+
			"with the login of its URL, without a login of its own", c.Listen))
	}
	found = append(found, c.certificateWarnings()...)
	if c.AdminPprof && c.Admin == "" {
		found = append(found, "admin-pprof: has no effect without admin, the address of the port that serves profiles")
	}
	if c.AdminLocks && c.Admin == "" {
		found = append(found, "admin-locks: has no effect without admin, the address of the port that shows locks")
	}
	if c.Announce != "" && !c.HasCluster() {
		found = append(found, "announce: has no effect: only the ports for the nodes of a redis+cluster:// upstream "+
			"are announced")
	}
	if len(c.LockTags) > 0 && len(c.LockKeys) == 0 {
		found = append(found, "lock-tags: has no effect without lock-keys")
	}
	found = append(found, c.lockClassWarnings()...)
	for _, glob := range c.LockKeys {
		if strings.Trim(glob, "*") == "" {
			found = append(found, fmt.Sprintf("lock-keys: %q makes every key a lock key: the upstream gets no "+
				"commands on keys", glob))
		}
		if looksLikePrefix(glob) {
			found = append(found, fmt.Sprintf("lock-keys: %q matches one key only; %q matches all keys that begin "+
				"with it", glob, glob+"*"))
		}
	}
	return found
}

// valueProblem returns the text of an error about one value.
func valueProblem(s Setting, value string, err error) string {
	return fmt.Sprintf("%q %v", s.redact(value), err)
}
