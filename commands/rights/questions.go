package rights

import (
	"redlock-proxy/commands/catalog/spec"
	"redlock-proxy/commands/catalog/syntax"
)

// Questions are the commands about which the upstream is asked whether the client may do them,
// before these words are run on the masters: in a form that is the same for all values, and with
// all keys, for they may be allowed one by one and not together (by two selectors). There are none
// for a command that needs no right but the login, or that is an error whatever the rights are.
func Questions(words []string) [][]string {
	name := syntax.Lower(words[0])
	switch {
	case syntax.IsEval(name):
		return evalQuestions(name, words)
	case name == "locklist":
		return [][]string{{"scan", "0"}}
	case name == "ping", name == "unwatch":
		return [][]string{{name}}
	case name == "select":
		return [][]string{{name, "0"}}
	case len(words) < 2:
		return nil
	}
	key := words[1]
	switch name {
	case "lock":
		return [][]string{questionOf("set", key)}
	case "unlock":
		return [][]string{questionOf("del", key)}
	case "extend":
		return [][]string{questionOf("pexpire", key)}
	case "lockinfo", "fence":
		return [][]string{questionOf("get", key)}
	case "forceunlock": // to end what another has takes what ending its connection takes
		return [][]string{questionOf("del", key), {"client", "kill", "id", "0"}}
	case "watch":
		return [][]string{append([]string{name}, words[1:]...)}
	case "script":
		return scriptQuestions(syntax.Lower(key))
	case "proxy":
		switch syntax.Lower(key) {
		case "info":
			return [][]string{{"info"}}
		case "reload": // to change settings takes what changing those of Redis takes; no Redis has this one
			return [][]string{{"config", "set", "redlock-proxy", "reload"}}
		case "move": // it changes what all proxies do, and ends the connections of others
			return [][]string{{"config", "set", "redlock-proxy", "move"}, {"client", "kill", "id", "0"}}
		}
	default:
		return KeyQuestions(words)
	}
	return nil
}

// knownByAll are commands that every upstream knows and that need the rights of one that not every
// one knows, for each of its keys.
var knownByAll = map[string][]string{
	"digest": {"get"}, "msetex": {"set"}, "hgetdel": {"hget", "hdel"}, "hgetex": {"hget", "hset"}, "hsetex": {"hset"},
	"delex": {"del"}, "delifeq": {"del"}, "expiretime": {"ttl"}, "pexpiretime": {"ttl"},
}

// KeyQuestions are those about an ordinary command of Redis on keys; none where it has too few
// words, or too many.
func KeyQuestions(words []string) (all [][]string) {
	name := syntax.Lower(words[0])
	what := spec.Find([]byte(name))
	if what == nil || what.Keys == nil || !syntax.Fits(what.Arity, len(words)) {
		return nil
	}
	keys := what.KeysAmong(words)
	if known := knownByAll[name]; known != nil {
		for _, key := range syntax.Distinct(keys) {
			for _, other := range known {
				all = append(all, questionOf(other, key))
			}
		}
		return all
	}
	if len(keys) != 1 || !beginsWithKeys(name) {
		return wholeQuestion(words, len(keys))
	}
	q := questionOf(name, keys[0])
	if name == "set" && setReads(words) {
		q = append(q, "get")
	}
	return [][]string{q}
}

// beginsWithKeys is true of commands whose keys stand at fixed places from the first argument on,
// and of which one is enough.
func beginsWithKeys(name string) bool {
	at, fixed := spec.Find([]byte(name)).Keys.Fixed()
	return fixed && at.First == 1 && (at.Last == 1 || at.Last < 0)
}

// wholeQuestion is a command with its keys where they are, and what says where they are, or that
// they are; nothing else of it is told.
func wholeQuestion(words []string, keys int) [][]string {
	if keys == 0 {
		return nil
	}
	args := syntax.Bytes(words)
	rule := spec.KeysOf(args[0])
	places, _ := rule.Places(args, len(args))
	q := []string{syntax.Lower(words[0])}
	for i, word := range words[1:] {
		if !places.Has(i+1) && !rule.Tell(i+1) {
			word = "0"
		}
		q = append(q, word)
	}
	return [][]string{q}
}

// setReads reports whether a SET also reads.
func setReads(words []string) bool {
	access, _ := spec.AccessOf("set", syntax.Bytes(words))
	return access&spec.Takes != 0
}

// questionOf is the question about a command on one key, with as many words as it has
// at least.
func questionOf(name, key string) []string {
	q := []string{name, key}
	arity := spec.Find([]byte(name)).Arity
	for range max(arity, -arity) - len(q) {
		q = append(q, "0")
	}
	return q
}

// evalQuestions has all keys in one question, as the upstream would see them.
func evalQuestions(name string, words []string) [][]string {
	if syntax.EvalFailure(name, words) != "" {
		return nil
	}
	n, _ := syntax.Int(words[2])
	return [][]string{append([]string{name, "0", words[2]}, words[3:3+n]...)}
}

// scriptQuestions are about SCRIPT's subcommands; of any other one the upstream says what
// is wrong.
func scriptQuestions(sub string) [][]string {
	switch sub {
	case "load", "exists", "flush":
		return [][]string{{"script", sub, "0"}}
	case "kill":
		return [][]string{{"script", sub}}
	}
	return nil
}
