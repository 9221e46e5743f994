package commands

import (
	"iter"
	"slices"
	"strings"
)

// KeyRule says where the keys of a command stand.
type KeyRule struct {
	span           // as in COMMAND; with counted the first key counts, too
	counted int    // the index of the word that counts the keys right behind it; 0: none
	subs    string // the subcommands that have the key, where not all have it
	// find looks at all words, where nothing less tells.
	find func(words [][]byte) KeyPlaces
}

// span are the words from first to last, in steps; last is counted from the end
// where it is negative. Its zero value has none.
type span struct{ first, last, step int }

// KeyPlaces are the indexes of a command's keys among its words.
type KeyPlaces [3]span

// keySpecs has every command with keys, those of the modules that come with Redis
// included. Channels are no keys.
var keySpecs = []struct {
	rule  KeyRule
	names string
}{
	{KeyRule{span: span{1, 1, 1}}, `
		append bitcount bitfield bitfield_ro bitpos decr decrby delex delifeq digest dump expire expireat expiretime
		get getbit getdel getex getrange getset incr incrby incrbyfloat increx move persist pexpire pexpireat pexpiretime
		psetex pttl restore restore-asking set setbit setex setnx setrange strlen substr ttl type pfadd
		hdel hexists hexpire hexpireat hexpiretime hget hgetall hgetdel hgetex hincrby hincrbyfloat hkeys hlen hmget hmset
		hpersist hpexpire hpexpireat hpexpiretime hpttl hrandfield hscan hset hsetex hsetnx hstrlen httl hvals
		lindex linsert llen lpop lpos lpush lpushx lrange lrem lset ltrim rpop rpush rpushx
		sadd scard sismember smembers smismember spop srandmember srem sscan
		zadd zcard zcount zincrby zlexcount zmscore zpopmax zpopmin zrandmember zrange zrangebylex zrangebyscore zrank zrem
		zremrangebylex zremrangebyrank zremrangebyscore zrevrange zrevrangebylex zrevrangebyscore zrevrank zscan zscore
		geoadd geodist geohash geopos georadius_ro georadiusbymember_ro geosearch
		xack xackdel xadd xautoclaim xcfgset xclaim xdel xdelex xlen xnack xpending xrange xrevrange xsetid xtrim
		arcount ardel ardelrange arget argetrange argrep arinfo arinsert arlastitems arlen armget armset arnext arop
		arring arscan arseek arset
		vadd vcard vdim vemb vgetattr vinfo vismember vlinks vrandmember vrange vrem vsetattr vsim
		bf.add bf.card bf.exists bf.info bf.insert bf.loadchunk bf.madd bf.mexists bf.reserve bf.scandump
		cf.add cf.addnx cf.compact cf.count cf.del cf.exists cf.info cf.insert cf.insertnx cf.loadchunk cf.mexists
		cf.reserve cf.scandump
		cms.incrby cms.info cms.initbydim cms.initbyprob cms.query
		topk.add topk.count topk.incrby topk.info topk.list topk.query topk.reserve
		tdigest.add tdigest.byrank tdigest.byrevrank tdigest.cdf tdigest.create tdigest.info tdigest.max tdigest.min
		tdigest.quantile tdigest.rank tdigest.reset tdigest.revrank tdigest.trimmed_mean
		ts.add ts.alter ts.create ts.decrby ts.del ts.get ts.incrby ts.info ts.range ts.revrange
		json.arrappend json.arrindex json.arrinsert json.arrlen json.arrpop json.arrtrim json.clear json.del json.forget
		json.get json.merge json.numincrby json.nummultby json.numpowby json.objkeys json.objlen json.resp json.set
		json.strappend json.strlen json.toggle json.type
		ft.sugadd ft.sugdel ft.sugget ft.suglen cl.throttle`},
	{KeyRule{span: span{1, -1, 1}}, `del exists mget touch unlink watch pfcount pfmerge
		sdiff sdiffstore sinter sinterstore sunion sunionstore`},
	{KeyRule{span: span{1, -1, 2}}, `mset msetnx`},
	{KeyRule{span: span{1, -1, 3}}, `json.mset ts.madd`},
	{KeyRule{span: span{1, -2, 1}}, `blpop brpop bzpopmax bzpopmin json.mget`},
	{KeyRule{span: span{1, 2, 1}}, `blmove brpoplpush copy geosearchstore lcs lmove rename renamenx rpoplpush smove
		zrangestore ts.createrule ts.deleterule`},
	{KeyRule{span: span{2, -1, 1}}, `bitop`},
	{KeyRule{span: span{2, 2, 1}}, `pfdebug`},
	{KeyRule{span: span{2, 2, 1}, subs: "encoding freq idletime refcount"}, `object`},
	{KeyRule{span: span{2, 2, 1}, subs: "usage"}, `memory`},
	{KeyRule{span: span{2, 2, 1}, subs: "consumers groups stream"}, `xinfo`},
	{KeyRule{span: span{2, 2, 1}, subs: "create createconsumer delconsumer destroy setid"}, `xgroup`},
	{KeyRule{span: span{2, 2, 1}, subs: "object listpack quicklist sdslen ziplist htstats-key digest-value"}, `debug`},
	{KeyRule{span: span{2, 2, 1}, subs: "memory fields"}, `json.debug`},
	{KeyRule{counted: 1, span: span{step: 1}}, `lmpop sintercard zdiff zinter zintercard zmpop zunion`},
	{KeyRule{counted: 1, span: span{step: 2}}, `msetex`},
	{KeyRule{counted: 2, span: span{step: 1}}, `blmpop bzmpop eval evalsha eval_ro evalsha_ro fcall fcall_ro`},
	{KeyRule{counted: 2, span: span{first: 1, step: 1}}, `zdiffstore zinterstore zunionstore cms.merge tdigest.merge`},
	{KeyRule{find: sortKeys}, `sort sort_ro`},
	{KeyRule{find: radiusKeys}, `georadius georadiusbymember`},
	{KeyRule{find: streamKeys}, `xread xreadgroup`},
	{KeyRule{find: migrateKeys}, `migrate`},
}

// keyRules finds them by name in lower case; keyInitials has, for each length of a
// name, a bit for each first letter.
var keyRules, keyInitials = func() (map[string]*KeyRule, [longestName + 1]uint32) {
	rules, initials := map[string]*KeyRule{}, [longestName + 1]uint32{}
	for i := range keySpecs {
		for _, name := range strings.Fields(keySpecs[i].names) {
			rules[name] = &keySpecs[i].rule
			initials[len(name)] |= initial(name[0])
		}
	}
	return rules, initials
}()

// keyRule finds the rule of a command by its name in any case; nil where it has no
// keys.
func keyRule(name []byte) *KeyRule {
	var folded [longestName]byte
	if len(name) == 0 || len(name) > len(folded) || keyInitials[len(name)]&initial(name[0]) == 0 {
		return nil
	}
	for i, b := range name {
		if 'A' <= b && b <= 'Z' {
			b += 'a' - 'A'
		}
		folded[i] = b
	}
	return keyRules[string(folded[:len(name)])]
}

// First reports whether the first argument is the command's one key.
func (r *KeyRule) First() bool { return r.span == span{1, 1, 1} }

// Places finds the keys of a command of so many words, of which the first ones are
// given. known is false where these do not tell.
func (r *KeyRule) Places(words [][]byte, total int) (places KeyPlaces, known bool) {
	switch {
	case r.find != nil:
		if len(words) < total {
			return KeyPlaces{}, false
		}
		return r.find(words), true
	case r.counted > 0:
		return r.countedPlaces(words, total)
	case r.subs != "" && len(words) < 2:
		return KeyPlaces{}, total < 2
	case r.subs != "" && !slices.Contains(strings.Fields(r.subs), lower(words[1])):
		return KeyPlaces{}, true
	}
	return KeyPlaces{r.within(total)}, true
}

// within has last count from the beginning, and no key behind the last word.
func (s span) within(total int) span {
	if s.last < 0 {
		s.last += total
	}
	s.last = min(s.last, total-1)
	return s
}

// countedPlaces takes a number that is too large for as many as there are: what
// such a command gets is an error, from whoever gets it.
func (r *KeyRule) countedPlaces(words [][]byte, total int) (KeyPlaces, bool) {
	if len(words) <= r.counted {
		return KeyPlaces{}, len(words) == total
	}
	var places KeyPlaces
	if r.first > 0 {
		places[1] = span{r.first, r.first, 1}
	}
	n, err := parseInt(words[r.counted])
	if err == nil && n > 0 {
		first := r.counted + 1
		last := first + int(min(n-1, int64(total)))*r.step
		places[0] = span{first, min(last, total-1), r.step}
	}
	return places, true
}

// all are the indexes.
func (p KeyPlaces) all() iter.Seq[int] {
	return func(yield func(int) bool) {
		for _, s := range p {
			for i := s.first; s.step > 0 && i <= s.last; i += s.step {
				if !yield(i) {
					return
				}
			}
		}
	}
}

// Has reports whether the word with this index is a key.
func (p KeyPlaces) Has(index int) bool {
	for _, s := range p {
		if s.step > 0 && index >= s.first && index <= s.last && (index-s.first)%s.step == 0 {
			return true
		}
	}
	return false
}

// Last is the greatest index of a key, or -1.
func (p KeyPlaces) Last() int {
	last := -1
	for _, s := range p {
		if s.step > 0 && s.last >= s.first {
			last = max(last, s.last-(s.last-s.first)%s.step)
		}
	}
	return last
}

// one is the place of a single key.
func one(index int) span { return span{index, index, 1} }

// sortKeys is SORT key [BY pattern] [LIMIT offset count] [GET pattern …] [STORE
// key]: the last STORE counts. What BY and GET read is no key of the command.
func sortKeys(words [][]byte) (places KeyPlaces) {
	if len(words) > 1 {
		places[0] = one(1)
	}
	for i := 2; i < len(words); i++ {
		switch lower(words[i]) {
		case "by", "get":
			i++
		case "limit":
			i += 2
		case "store":
			if i++; i < len(words) {
				places[1] = one(i)
			}
		}
	}
	return places
}

// radiusKeys is GEORADIUS key … [STORE key] [STOREDIST key].
func radiusKeys(words [][]byte) (places KeyPlaces) {
	if len(words) > 1 {
		places[0] = one(1)
	}
	for i := 5; i < len(words)-1; i++ {
		switch lower(words[i]) {
		case "store":
			i++
			places[1] = one(i)
		case "storedist":
			i++
			places[2] = one(i)
		}
	}
	return places
}

// streamKeys is XREAD … STREAMS key … id …, with as many ids as keys.
func streamKeys(words [][]byte) (places KeyPlaces) {
	for i := 1; i < len(words); i++ {
		switch lower(words[i]) {
		case "block", "count", "claim":
			i++
		case "group":
			i += 2
		case "streams":
			if n := (len(words) - i - 1) / 2; n > 0 {
				places[0] = span{i + 1, i + n, 1}
			}
			return places
		}
	}
	return places
}

// migrateKeys is MIGRATE host port key|"" db timeout … [KEYS key …].
func migrateKeys(words [][]byte) (places KeyPlaces) {
	if len(words) > 3 {
		places[0] = one(3)
	}
	for i := 6; i < len(words); i++ {
		switch lower(words[i]) {
		case "auth":
			i++
		case "auth2":
			i += 2
		case "keys":
			if len(words[3]) == 0 && i+1 < len(words) {
				places[0] = span{i + 1, len(words) - 1, 1}
			}
			return places
		}
	}
	return places
}
