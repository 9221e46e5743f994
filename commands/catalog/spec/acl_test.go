package spec

import (
	"slices"
	"strings"
	"testing"
)

// TestCategoriesLikeRedis checks that the categories equal the categories of a real Redis.
func TestCategoriesLikeRedis(t *testing.T) {
	server := startRedis(t)
	names, err := server.Do(t.Context(), "ACL", "CAT").StringSlice()
	if err != nil || !slices.Equal(names, CategoryNames()) {
		t.Fatalf("categories %q, want %q; %v", CategoryNames(), names, err)
	}
	inRedis, inTable := map[string]Categories{}, CategoriesByName()
	for _, category := range names {
		members, err := server.Do(t.Context(), "ACL", "CAT", category).StringSlice()
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range members {
			inRedis[name] |= CategoriesOf(category)
		}
	}
	for name, categories := range inRedis {
		if inTable[name] != categories {
			t.Errorf("%s is in %v, in Redis in %v", name, inTable[name].Names(), categories.Names())
		}
	}
	if len(inRedis) < 300 {
		t.Errorf("only %d commands were compared", len(inRedis))
	}
}

// accessFlags maps flags of a key to accesses, as Redis' ACL does.
func accessFlags(flags []any) (a Access) {
	for _, flag := range flags {
		switch flag {
		case "access":
			a |= ReadsValue
		case "insert", "delete", "update":
			a |= ChangesValue
		}
	}
	return a
}

// TestAccessLikeRedis checks that AccessOf agrees with COMMAND GETKEYSANDFLAGS.
func TestAccessLikeRedis(t *testing.T) {
	server := startRedis(t)
	checked := 0
	for line := range strings.SplitSeq(strings.TrimSpace(accessExamples), "\n") {
		words := strings.Fields(line)
		var bytes [][]byte
		var request []any
		for _, w := range words {
			bytes, request = append(bytes, []byte(w)), append(request, w)
		}
		keys, err := server.Do(t.Context(), append([]any{"COMMAND", "GETKEYSANDFLAGS"}, request...)...).Slice()
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		want := map[string]Access{}
		for _, k := range keys {
			want[k.([]any)[0].(string)] = accessFlags(k.([]any)[1].([]any))
		}
		name := words[0]
		if _, sub := CategoriesByName()[words[0]+"|"+words[1]]; sub {
			name += "|" + words[1]
		}
		first, others := AccessOf(name, bytes)
		for key, access := range want {
			got := others
			if key == "k1" {
				got = first
			}
			if got != access {
				t.Errorf("%s: %s of %s, in Redis %s", line, accessText(got), key, accessText(access))
			}
			checked++
		}
	}
	if checked < 100 {
		t.Errorf("only %d keys were compared", checked)
	}
}

func accessText(a Access) string {
	return []string{"nothing", "takes", "changes", "takes and changes"}[a]
}

// TestEveryAccess checks that AccessOf agrees with the constant flags of keys in COMMAND INFO.
func TestEveryAccess(t *testing.T) {
	server := startRedis(t)
	entries, err := server.Do(t.Context(), "COMMAND").Slice()
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	var walk func(entry []any)
	walk = func(entry []any) {
		name := entry[0].(string)
		var accessFound []Access
		for _, spec := range entry[8].([]any) {
			fields := spec.([]any)
			flags := fields[slices.Index(fields, any("flags"))+1].([]any)
			if !slices.Contains(flags, any("variable_flags")) && !slices.Contains(flags, any("incomplete")) &&
				!slices.Contains(flags, any("not_key")) {
				accessFound = append(accessFound, accessFlags(flags))
			}
		}
		first, others := AccessOf(name, [][]byte{[]byte(name)})
		for i, want := range accessFound {
			got := others
			if i == 0 {
				got = first
			}
			if got != want && !(name == "sort" && i > 0) {
				t.Errorf("%s: key %d: %s, in Redis %s", name, i, accessText(got), accessText(want))
			}
			checked++
		}
		for _, sub := range entry[9].([]any) {
			walk(sub.([]any))
		}
	}
	for _, entry := range entries {
		walk(entry.([]any))
	}
	if checked < 200 {
		t.Errorf("only %d were compared", checked)
	}
}

// accessExamples lists commands whose first key is k1.
const accessExamples = `
set k1 v
set k1 v get
set k1 v px 100 GET nx
set k1 get
bitfield k1 get u8 0
bitfield k1 get u8 0 get u8 1
bitfield k1 get u8 0 set u8 1 2
bitfield k1 incrby u8 1 2
bitfield k1 overflow sat get u8 0
bitfield k1 overflow sat incrby u8 1 2
bitfield k1
sort k1
sort k1 limit 0 1 store k2
sort k1 by w_* get # store k2 store k3
sort_ro k1
georadius k1 1 2 3 m store k2
georadius k1 1 2 3 m storedist k2
georadiusbymember k1 m 3 m store k2
migrate h 1 k1 0 1
copy k1 k2
rename k1 k2
renamenx k1 k2
smove k1 k2 m
lmove k1 k2 left left
blmove k1 k2 left left 0
rpoplpush k1 k2
brpoplpush k1 k2 0
pfmerge k1 k2 k3
pfcount k1 k2
bitop and k1 k2 k3
sdiffstore k1 k2 k3
sinterstore k1 k2 k3
sunionstore k1 k2 k3
zdiffstore k1 2 k2 k3
zinterstore k1 2 k2 k3 weights 1 2
zunionstore k1 2 k2 k3
zrangestore k1 k2 0 1
geosearchstore k1 k2 fromlonlat 1 2 byradius 3 m
mset k1 v k2 v
msetnx k1 v k2 v
del k1 k2
unlink k1 k2
exists k1 k2
touch k1 k2
watch k1 k2
mget k1 k2
lcs k1 k2
sinter k1 k2
sintercard 2 k1 k2
zunion 2 k1 k2
zdiff 2 k1 k2
lmpop 2 k1 k2 left
blmpop 0 2 k1 k2 left
zmpop 2 k1 k2 min
bzmpop 0 2 k1 k2 min
blpop k1 k2 0
bzpopmin k1 k2 0
xread streams k1 k2 0 0
xreadgroup group g c streams k1 k2 > >
eval s 2 k1 k2 a
evalsha s 2 k1 k2 a
eval_ro s 2 k1 k2 a
fcall f 2 k1 k2
fcall_ro f 2 k1 k2
memory usage k1
object encoding k1
object freq k1
object idletime k1
object refcount k1
xgroup create k1 g 0
xgroup createconsumer k1 g c
xgroup delconsumer k1 g c
xgroup destroy k1 g
xgroup setid k1 g 0
xinfo stream k1
xinfo groups k1
xinfo consumers k1 g
restore k1 0 x
dump k1
type k1
getdel k1
getex k1
getset k1 v
incr k1
append k1 v
setbit k1 0 1
hset k1 f v
hdel k1 f
spop k1
zpopmin k1
xadd k1 * f v
`
