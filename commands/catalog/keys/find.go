package keys

import "redlock-proxy/commands/catalog/syntax"

// The rules of commands whose keys depend on all words. They are immutable.
var (
	OfSort    = &Rule{find: sortKeys}
	OfRadius  = &Rule{find: radiusKeys}
	OfStreams = &Rule{find: streamKeys}
	OfMigrate = &Rule{find: migrateKeys}
)

// sortKeys finds the keys of SORT key [BY pattern] [LIMIT offset count] [GET pattern …] [STORE
// key]. The last STORE counts. The keys that BY and GET read are not keys of the command.
func sortKeys(words [][]byte) (places Places) {
	if len(words) > 1 {
		places[0] = SpanOfOne(1)
	}
	for i := 2; i < len(words); i++ {
		switch syntax.LowerCString(words[i]) {
		case "by", "get":
			i++
		case "limit":
			i += 2
		case "store":
			if i++; i < len(words) {
				places[1] = SpanOfOne(i)
			}
		}
	}
	return places
}

// radiusKeys finds the keys of GEORADIUS key … [STORE key] [STOREDIST key].
func radiusKeys(words [][]byte) (places Places) {
	if len(words) > 1 {
		places[0] = SpanOfOne(1)
	}
	for i := 5; i < len(words)-1; i++ {
		switch syntax.LowerCString(words[i]) {
		case "store":
			i++
			places[1] = SpanOfOne(i)
		case "storedist":
			i++
			places[2] = SpanOfOne(i)
		}
	}
	return places
}

// streamKeys finds the keys of XREAD … STREAMS key … id …, with an ID for each key.
func streamKeys(words [][]byte) (places Places) {
	for i := 1; i < len(words); i++ {
		switch syntax.LowerCString(words[i]) {
		case "block", "count", "claim":
			i++
		case "group":
			i += 2
		case "streams":
			if n := (len(words) - i - 1) / 2; n > 0 {
				places[0] = Span{i + 1, i + n, 1}
			}
			return places
		}
	}
	return places
}

// migrateKeys finds the keys of MIGRATE host port key|"" db timeout … [KEYS key …].
func migrateKeys(words [][]byte) (places Places) {
	if len(words) > 3 {
		places[0] = SpanOfOne(3)
	}
	for i := 6; i < len(words); i++ {
		switch syntax.LowerCString(words[i]) {
		case "auth":
			i++
		case "auth2":
			i += 2
		case "keys":
			if len(words[3]) == 0 && i+1 < len(words) {
				places[0] = Span{i + 1, len(words) - 1, 1}
			}
			return places
		}
	}
	return places
}
