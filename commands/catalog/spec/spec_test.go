package spec

import (
	"slices"
	"strings"
	"testing"

	"redlock-proxy/commands/catalog/keys"
	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/internal/redistest"

	"github.com/redis/go-redis/v9"
)

// realCommand holds the entry of a command or subcommand in the reply to COMMAND.
type realCommand struct {
	words                   []string // the name
	arity                   int
	flags                   []any
	span                    keys.Span
	hasKeys, hasMovableKeys bool
	hasSubcommands          bool
}

// realCommands returns the commands of a redis-server.
func realCommands(t *testing.T, server *redis.Client) (result []realCommand) {
	var walk func(entry []any)
	walk = func(entry []any) {
		flags, specs := entry[2].([]any), entry[8].([]any)
		result = append(result, realCommand{
			words: strings.Split(entry[0].(string), "|"), arity: int(entry[1].(int64)), flags: flags,
			span:    keys.Span{First: int(entry[3].(int64)), Last: int(entry[4].(int64)), Step: int(entry[5].(int64))},
			hasKeys: len(specs) > 0 || entry[3].(int64) != 0, hasMovableKeys: slices.Contains(flags, any("movablekeys")),
			hasSubcommands: len(entry[9].([]any)) > 0,
		})
		for _, sub := range entry[9].([]any) {
			walk(sub.([]any))
		}
	}
	entries, err := server.Do(t.Context(), "COMMAND").Slice()
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		walk(entry.([]any))
	}
	return result
}

// startRedis starts a redis-server for the test.
func startRedis(t *testing.T) *redis.Client {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: redistest.New(t, redistest.Options{}).Addr(), Protocol: 2})
	t.Cleanup(func() { client.Close() })
	return client
}

// deviations lists the commands for which the table deliberately differs from COMMAND, at least in
// some versions, with the reason.
var deviations = map[string]string{
	"ssubscribe":   "channels are no keys",
	"sunsubscribe": "channels are no keys",
	"spublish":     "channels are no keys",
	"debug":        "COMMAND does not tell which of its subcommands have a key",
	"wait":         "it waits for replicas, and Redis 7.0 does not flag it as blocking",
	"zrank":        "since Redis 7.2 there may be a word more",
	"zrevrank":     "since Redis 7.2 there may be a word more",
}

// entry holds the facts about a command that both the table and COMMAND have.
type entry struct {
	arity          int
	writes, blocks bool
	keys           keys.Span
}

// entry returns the entry of COMMAND.
func (r realCommand) entry() entry {
	return entry{r.arity, slices.Contains(r.flags, any("write")), slices.Contains(r.flags, any("blocking")), r.span}
}

// entryLike returns the entry of the table. For movable keys and subcommands it copies the keys
// from COMMAND, because TestKeysLikeRedis compares the keys of such commands.
func (c *Command) entryLike(redisCommand realCommand) entry {
	t := entry{arity: c.Arity, writes: c.HasAny(Writes), blocks: c.HasAny(Blocks)}
	switch {
	case redisCommand.hasMovableKeys || redisCommand.hasSubcommands:
		t.keys = redisCommand.span
	case c.Keys != nil:
		t.keys = c.Keys.Span
	}
	return t
}

// TestTableLikeRedis checks that the table has the commands of a real Redis, and agrees with
// COMMAND. The table may lack a keyless command of a later Redis. Then every word of that command
// counts as a key.
func TestTableLikeRedis(t *testing.T) {
	checked := 0
	for _, real := range realCommands(t, startRedis(t)) {
		if len(real.words) > 1 {
			continue // a subcommand
		}
		name := real.words[0]
		c := Find([]byte(name))
		switch {
		case c == nil && (real.hasKeys || real.hasMovableKeys):
			t.Errorf("%s is missing", name)
			continue
		case c == nil, c.Arity == 0: // a command of a later Redis
			continue
		}
		checked++
		if got, want := c.entryLike(real), real.entry(); got != want && deviations[name] == "" {
			t.Errorf("%s: %+v, in Redis %+v", name, got, want)
		}
	}
	if all := len(valueCommands) + len(collectionCommands) + len(serverCommands); checked < all {
		t.Errorf("only %d of %d commands were compared", checked, all)
	}
}

// TestCommandsOfReadOnlyScripts checks that, in a real Redis, read-only scripts may call exactly
// the commands that neither write nor propagate.
func TestCommandsOfReadOnlyScripts(t *testing.T) {
	server := startRedis(t)
	checked := 0
	for _, real := range realCommands(t, server) {
		c := Find([]byte(real.words[0]))
		if c == nil || c.Arity == 0 || real.hasSubcommands || len(real.words) > 1 ||
			slices.Contains(real.flags, any("noscript")) {
			continue
		}
		call := []any{"EVAL_RO", "return redis.pcall(unpack(ARGV))", 0, c.Name}
		for range max(c.Arity, -c.Arity) - 1 {
			call = append(call, "1")
		}
		err := server.Do(t.Context(), call...).Err()
		refused := err != nil && strings.Contains(err.Error(), "Write commands are not allowed from read-only scripts")
		if c.HasAny(Writes|Propagates) != refused {
			t.Errorf("%s writes or propagates: %v, in Redis %v: %v", c.Name, !refused, refused, err)
		}
		checked++
	}
	if checked < 150 {
		t.Errorf("only %d commands were compared", checked)
	}
}

// TestFind checks that Find returns a command for its name in any case, and for no other word.
func TestFind(t *testing.T) {
	for c := range All() {
		if Find([]byte(strings.ToUpper(c.Name))) != c || syntax.Lower(c.Name) != c.Name {
			t.Errorf("%s is not found, or is there twice", c.Name)
		}
	}
	for _, name := range []string{"", "ge", "gets", "get\x00", "lock"} {
		if Find([]byte(name)) != nil || IsKeyless([]byte(name)) || KeysOf([]byte(name)) != nil {
			t.Errorf("%q is known", name)
		}
	}
	if !IsKeyless([]byte("PING")) || !IsKeyless([]byte("PING\x00x")) || IsKeyless([]byte("GET")) {
		t.Error("PING has no keys, GET has")
	}
	if n := testing.AllocsPerRun(100, func() { Find([]byte("GETRANGE")) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
