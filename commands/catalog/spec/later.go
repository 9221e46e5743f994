package spec

import (
	"strings"

	"redlock-proxy/commands/catalog/keys"
)

// laterCommands lists commands of Redis after version 7.0, and of Valkey.
var laterCommands = []Command{
	{Name: "delex", Arity: -2, Keys: firstArg, Properties: Writes},
	{Name: "delifeq", Arity: 3, Keys: firstArg, Properties: Writes},
	{Name: "digest", Arity: 2, Keys: firstArg},
	{Name: "hgetdel", Arity: -5, Keys: firstArg, Properties: Writes},
	{Name: "hgetex", Arity: -5, Keys: firstArg, Properties: Writes},
	{Name: "hsetex", Arity: -6, Keys: firstArg, Properties: Writes},
	{Name: "msetex", Arity: -4, Keys: countedKeyPairs, Properties: Writes},
	{Name: "waitaof", Arity: 4, Properties: Blocks},
}

// keyRulesOnly lists further commands with no description except the rule for their keys. Some of
// these commands belong to modules.
var keyRulesOnly = []struct {
	rule  *keys.Rule
	names string
}{
	{firstArg, `
		increx
		hexpire hexpireat hexpiretime hpersist hpexpire hpexpireat hpexpiretime hpttl
		httl
		xackdel xcfgset xdelex xnack
		arcount ardel ardelrange arget argetrange argrep arinfo arinsert arlastitems arlen armget armset
		arnext arop arring arscan arseek arset
		vadd vcard vdim vemb vgetattr vinfo vismember vlinks vrandmember vrange vrem vsetattr vsim
		bf.add bf.card bf.exists bf.info bf.insert bf.loadchunk bf.madd bf.mexists bf.reserve
		bf.scandump cf.add cf.addnx cf.compact cf.count cf.del cf.exists cf.info cf.insert cf.insertnx
		cf.loadchunk cf.mexists cf.reserve cf.scandump cms.incrby cms.info cms.initbydim cms.initbyprob
		cms.query topk.add topk.count topk.incrby topk.info topk.list topk.query topk.reserve
		tdigest.add tdigest.byrank tdigest.byrevrank tdigest.cdf tdigest.create tdigest.info tdigest.max
		tdigest.min tdigest.quantile tdigest.rank tdigest.reset tdigest.revrank tdigest.trimmed_mean
		ts.add ts.alter ts.create ts.decrby ts.del ts.get ts.incrby ts.info ts.range ts.revrange
		json.arrappend json.arrindex json.arrinsert json.arrlen json.arrpop json.arrtrim json.clear
		json.del json.forget json.get json.merge json.numincrby json.nummultby json.numpowby
		json.objkeys json.objlen json.resp json.set json.strappend json.strlen json.toggle json.type
		ft.sugadd ft.sugdel ft.sugget ft.suglen cl.throttle`},
	{firstTwoArgs, "ts.createrule ts.deleterule"},
	{allArgsButLast, "json.mget"},
	{keyTriples, "json.mset ts.madd"},
	{targetAndCountedKeys, "cms.merge tdigest.merge"},
	{keys.OfSubcommands("memory", "fields"), "json.debug"},
	{nil, `
		hotkeys commandlog sentinel ft._list ft.aggregate ft.aliasadd ft.aliasdel ft.aliasupdate ft.alter ft.config
		ft.create ft.cursor ft.dictadd ft.dictdel ft.dictdump ft.drop ft.dropindex ft.explain ft.explaincli
		ft.hybrid ft.info ft.profile ft.search ft.spellcheck ft.syndump ft.synupdate ft.tagvals ts.mget ts.mrange
		ts.mrevrange ts.queryindex`},
}

// commandsWithKeysOnly returns the commands of keyRulesOnly.
func commandsWithKeysOnly() (result []Command) {
	for _, group := range keyRulesOnly {
		for name := range strings.FieldsSeq(group.names) {
			result = append(result, Command{Name: name, Keys: group.rule})
		}
	}
	return result
}
