package rights

import (
	"redlock-proxy/commands/catalog/keys"
	"redlock-proxy/commands/catalog/spec"
	"redlock-proxy/commands/catalog/syntax"
)

// PermissionChecks returns the permission checks of a command. A permission check is a command for
// which the upstream reports whether the client may run it. Together, the returned commands require
// the same permissions as the given command. The proxy makes the checks before it runs the given
// command on the masters. The checks are the same for all values. A check has all keys, because two
// selectors may each permit one key, but not both keys together. A command that requires only a
// login, or that fails with any permissions, has no check.
func PermissionChecks(words []string) [][]string {
	name := syntax.Lower(words[0])
	switch {
	case syntax.IsEval(name):
		return evalChecks(name, words)
	case name == "locklist":
		return [][]string{{"scan", "0"}}
	case name == "ping", name == "unwatch":
		return [][]string{{name}}
	case len(words) < 2:
		return nil
	case name == "select": // the user may have access to some databases only
		return [][]string{{name, words[1]}}
	}
	key := words[1]
	switch name {
	case "lock":
		return [][]string{oneKeyCheck("set", key)}
	case "unlock":
		return [][]string{oneKeyCheck("del", key)}
	case "extend":
		return [][]string{oneKeyCheck("pexpire", key)}
	case "mlock":
		return countedKeyChecks("set", words)
	case "munlock":
		return countedKeyChecks("del", words)
	case "mextend":
		return countedKeyChecks("pexpire", words)
	case "lockinfo", "fence":
		return [][]string{oneKeyCheck("get", key)}
	case "forceunlock": // breaking a client's lock requires the permission to close its connection
		return [][]string{oneKeyCheck("del", key), {"client", "kill", "id", "0"}}
	case "watch":
		return [][]string{append([]string{name}, words[1:]...)}
	case "script":
		return scriptChecks(syntax.Lower(key))
	case "proxy":
		switch syntax.Lower(key) {
		case "info":
			return [][]string{{"info"}}
		case "reload": // requires the permission to change settings; no Redis has this setting
			return [][]string{{"config", "set", "redlock-proxy", "reload"}}
		case "move": // it affects all proxies, and closes connections of other clients
			return [][]string{{"config", "set", "redlock-proxy", "move"}, {"client", "kill", "id", "0"}}
		}
	default:
		return KeyPermissionChecks(words)
	}
	return nil
}

// equivalents maps commands that not every upstream knows to commands that every upstream knows and
// that require the same permissions for each key.
var equivalents = map[string][]string{
	"digest": {"get"}, "msetex": {"set"}, "hgetdel": {"hget", "hdel"}, "hgetex": {"hget", "hset"}, "hsetex": {"hset"},
	"delex": {"del"}, "delifeq": {"del"}, "expiretime": {"ttl"}, "pexpiretime": {"ttl"},
}

// KeyPermissionChecks returns the permission checks of a command on keys; none if its arity is
// wrong.
func KeyPermissionChecks(words []string) (checks [][]string) {
	name := syntax.Lower(words[0])
	cmd := spec.Find([]byte(name))
	if cmd == nil || cmd.Keys == nil || !syntax.FitsArity(cmd.Arity, len(words)) {
		return nil
	}
	keys := cmd.KeysAmong(words)
	if names := equivalents[name]; names != nil {
		for _, key := range syntax.Distinct(keys) {
			for _, equivalent := range names {
				checks = append(checks, oneKeyCheck(equivalent, key))
			}
		}
		return checks
	}
	if len(keys) != 1 || !beginsWithKeys(name) {
		return maskedChecks(words, len(keys))
	}
	check := oneKeyCheck(name, keys[0])
	if name == "set" && setReads(words) {
		check = append(check, "get")
	}
	return [][]string{check}
}

// beginsWithKeys reports whether the keys of a command are at fixed places from the first argument
// on, and one key is enough.
func beginsWithKeys(name string) bool {
	span, fixed := spec.Find([]byte(name)).Keys.FixedSpan()
	return fixed && span.First == 1 && (span.Last == 1 || span.Last < 0)
}

// maskedChecks returns one check: the command with its keys at their places, and the words that
// determine these places. Zeros replace all other words, so that the upstream learns no values.
func maskedChecks(words []string, keys int) [][]string {
	if keys == 0 {
		return nil
	}
	args := syntax.Bytes(words)
	rule := spec.KeysOf(args[0])
	places, _ := rule.Places(args, len(args))
	check := []string{syntax.Lower(words[0])}
	for i, word := range words[1:] {
		if !places.Has(i+1) && !rule.DeterminesKeys(i+1) {
			word = "0"
		}
		check = append(check, word)
	}
	return [][]string{check}
}

// setReads reports whether a SET also reads.
func setReads(words []string) bool {
	access, _ := spec.AccessOf("set", syntax.Bytes(words))
	return access&spec.ReadsValue != 0
}

// countedKeyChecks returns a check for each key of a command whose first argument is the number of
// its keys. name is the command in these checks.
func countedKeyChecks(name string, words []string) (checks [][]string) {
	args := syntax.Bytes(words)
	places, _ := keys.CountedKeys(1, 1).Places(args, len(args))
	for i := range places.All() {
		checks = append(checks, oneKeyCheck(name, words[i]))
	}
	return checks
}

// oneKeyCheck returns the check of a command on one key, with the minimum number of words.
func oneKeyCheck(name, key string) []string {
	check := []string{name, key}
	arity := spec.Find([]byte(name)).Arity
	for range max(arity, -arity) - len(check) {
		check = append(check, "0")
	}
	return check
}

// evalChecks returns one check of an EVAL or EVALSHA, with all its keys; none if its form is wrong.
func evalChecks(name string, words []string) [][]string {
	if syntax.EvalFailure(name, words) != "" {
		return nil
	}
	n, _ := syntax.Int(words[2])
	return [][]string{append([]string{name, "0", words[2]}, words[3:3+n]...)}
}

// scriptChecks returns the checks of a subcommand of SCRIPT; none for an unknown subcommand.
func scriptChecks(sub string) [][]string {
	switch sub {
	case "load", "exists", "flush":
		return [][]string{{"script", sub, "0"}}
	case "kill":
		return [][]string{{"script", sub}}
	}
	return nil
}
