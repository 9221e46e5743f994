package rights

import (
	"redlock-proxy/commands/catalog/keys"
	"redlock-proxy/commands/catalog/spec"
	"redlock-proxy/commands/catalog/syntax"
)

// Questions returns commands that together require the permissions that a command requires. Before
// the command runs on the masters, the proxy asks the upstream whether the client may run the
// returned commands. The questions are the same for all values. A question has all keys, because
// two selectors may each permit one key, but not both keys together. There is no question for a
// command that requires only a login, or that fails with any permissions.
func Questions(words []string) [][]string {
	name := syntax.Lower(words[0])
	switch {
	case syntax.IsEval(name):
		return evalQuestions(name, words)
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
		return [][]string{questionOf("set", key)}
	case "unlock":
		return [][]string{questionOf("del", key)}
	case "extend":
		return [][]string{questionOf("pexpire", key)}
	case "mlock":
		return eachCountedKey("set", words)
	case "munlock":
		return eachCountedKey("del", words)
	case "mextend":
		return eachCountedKey("pexpire", words)
	case "lockinfo", "fence":
		return [][]string{questionOf("get", key)}
	case "forceunlock": // breaking a client's lock requires the permission to close its connection
		return [][]string{questionOf("del", key), {"client", "kill", "id", "0"}}
	case "watch":
		return [][]string{append([]string{name}, words[1:]...)}
	case "script":
		return scriptQuestions(syntax.Lower(key))
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
		return KeyQuestions(words)
	}
	return nil
}

// equivalents maps commands that not every upstream knows to commands that every upstream knows and
// that require the same permissions for each key.
var equivalents = map[string][]string{
	"digest": {"get"}, "msetex": {"set"}, "hgetdel": {"hget", "hdel"}, "hgetex": {"hget", "hset"}, "hsetex": {"hset"},
	"delex": {"del"}, "delifeq": {"del"}, "expiretime": {"ttl"}, "pexpiretime": {"ttl"},
}

// KeyQuestions returns the questions about a command on keys; none if its arity is wrong.
func KeyQuestions(words []string) (questions [][]string) {
	name := syntax.Lower(words[0])
	cmd := spec.Find([]byte(name))
	if cmd == nil || cmd.Keys == nil || !syntax.FitsArity(cmd.Arity, len(words)) {
		return nil
	}
	keys := cmd.KeysAmong(words)
	if names := equivalents[name]; names != nil {
		for _, key := range syntax.Distinct(keys) {
			for _, equivalent := range names {
				questions = append(questions, questionOf(equivalent, key))
			}
		}
		return questions
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

// beginsWithKeys reports whether the keys of a command are at fixed places from the first argument
// on, and one key is enough.
func beginsWithKeys(name string) bool {
	span, fixed := spec.Find([]byte(name)).Keys.FixedSpan()
	return fixed && span.First == 1 && (span.Last == 1 || span.Last < 0)
}

// wholeQuestion returns the command with its keys at their places and the words that determine
// these places. Zeros replace all other words, so that the upstream learns no values.
func wholeQuestion(words []string, keys int) [][]string {
	if keys == 0 {
		return nil
	}
	args := syntax.Bytes(words)
	rule := spec.KeysOf(args[0])
	places, _ := rule.Places(args, len(args))
	q := []string{syntax.Lower(words[0])}
	for i, word := range words[1:] {
		if !places.Has(i+1) && !rule.DeterminesKeys(i+1) {
			word = "0"
		}
		q = append(q, word)
	}
	return [][]string{q}
}

// setReads reports whether a SET also reads.
func setReads(words []string) bool {
	access, _ := spec.AccessOf("set", syntax.Bytes(words))
	return access&spec.ReadsValue != 0
}

// eachCountedKey returns one question about a command for each key of a command whose first
// argument is the number of its keys.
func eachCountedKey(name string, words []string) (questions [][]string) {
	args := syntax.Bytes(words)
	places, _ := keys.CountedKeys(1, 1).Places(args, len(args))
	for i := range places.All() {
		questions = append(questions, questionOf(name, words[i]))
	}
	return questions
}

// questionOf returns the question about a command on one key, with its minimum number of words.
func questionOf(name, key string) []string {
	q := []string{name, key}
	arity := spec.Find([]byte(name)).Arity
	for range max(arity, -arity) - len(q) {
		q = append(q, "0")
	}
	return q
}

// evalQuestions returns one question with all keys, as the upstream would get them.
func evalQuestions(name string, words []string) [][]string {
	if syntax.EvalFailure(name, words) != "" {
		return nil
	}
	n, _ := syntax.Int(words[2])
	return [][]string{append([]string{name, "0", words[2]}, words[3:3+n]...)}
}

// scriptQuestions returns the questions about a subcommand of SCRIPT; none for an unknown
// subcommand.
func scriptQuestions(sub string) [][]string {
	switch sub {
	case "load", "exists", "flush":
		return [][]string{{"script", sub, "0"}}
	case "kill":
		return [][]string{{"script", sub}}
	}
	return nil
}
