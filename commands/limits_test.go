package commands

import (
	"fmt"
	"strings"
	"testing"

	"redlock-proxy/commands/command"
	"redlock-proxy/commands/lockkeys/program"
	"redlock-proxy/commands/lockkeys/script"
	"redlock-proxy/commands/rights"
)

// manyKeys returns n names of lock keys.
func manyKeys(n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprint("k", i))
	}
	return names
}

// TestUndeclaredKeyLimit checks the limit on undeclared keys of a script that computes its
// keys.
func TestUndeclaredKeyLimit(t *testing.T) {
	const body = `for i = 1, tonumber(ARGV[1]) do redis.call('get', 'k:' .. i) end return 'done'`
	b := newRegisterFixture(t)
	if got := b.run("EVAL", body, "1", "k", fmt.Sprint(program.MaxUndeclaredKeys)); got != `"done"` {
		t.Errorf("%d: %s", program.MaxUndeclaredKeys, got)
	}
	b = newRegisterFixture(t)
	want := fmt.Sprintf("ERR too many undeclared lock keys: 'k:%d' is not in KEYS, and a script may use at most %d such keys; declare it", program.MaxUndeclaredKeys+1, program.MaxUndeclaredKeys)
	if got := b.run("EVAL", body, "1", "k", "10000"); got != want {
		t.Errorf("10000: %s", got)
	}
	if n := len(b.masters.Rounds); n > program.MaxUndeclaredKeys+2 {
		t.Errorf("the masters were asked %d times", n)
	}
}

// TestUpdateUndeclaredKeyLimit checks the limit on undeclared keys of a script that writes.
func TestUpdateUndeclaredKeyLimit(t *testing.T) {
	b := newRegisterFixture(t)
	b.masters.Put("k", "x", 500)
	got := b.run("EVAL",
		`redis.call('set', KEYS[1], 'y', 'PX', 900) for i = 1, 10000 do redis.call('get', 'k:' .. i) end`, "1", "k")
	if !strings.HasPrefix(got, "ERR too many undeclared lock keys: ") {
		t.Error(got)
	}
	b.expectValue("k", "x:500")
}

// TestProgramKeyLimit checks that one command uses a limited number of keys.
func TestProgramKeyLimit(t *testing.T) {
	tooMany := "ERR too many lock keys: one command, script or transaction may use at most 1000"
	for _, words := range [][]string{
		append([]string{"DEL"}, manyKeys(program.MaxKeys+1)...),
		append([]string{"MGET"}, manyKeys(program.MaxKeys+1)...),
		append([]string{"EVAL", "return 1", fmt.Sprint(program.MaxKeys + 1)}, manyKeys(program.MaxKeys+1)...),
	} {
		b := newRegisterFixture(t)
		if got := b.run(words...); got != tooMany {
			t.Errorf("%s: %s", words[0], got)
		}
		b.expectRounds()
		if got := b.run(words[:len(words)-1]...); words[0] != "EVAL" && got == tooMany {
			t.Errorf("%s of %d keys: %s", words[0], program.MaxKeys, got)
		}
	}
	b := newRegisterFixture(t)
	runRouted(t.Context(), b.table, b.client, append([]string{"WATCH"}, manyKeys(program.MaxKeys)...), &b.out)
	runRouted(t.Context(), b.table, b.client, []string{"WATCH", "k-more"}, &b.out)
	if got := string(b.out.Bytes); got != "+OK\r\n-"+tooMany+"\r\n" {
		t.Errorf("WATCH: %q", got)
	}
}

// TestInfoFieldsOfClients checks that INFO has fields that clients and their tests read: the width
// of integers, and the number of cached scripts.
func TestInfoFieldsOfClients(t *testing.T) {
	b := newRegisterFixture(t)
	info := func(section string) string {
		var out command.Reply
		words := [][]byte{[]byte("INFO"), []byte(section)}
		b.table.Run(b.table.Lookup(words[0]), command.Call{Ctx: t.Context(), Client: b.client, Args: words, Out: &out})
		return string(out.Bytes)
	}
	for section, want := range map[string]string{"server": "\r\narch_bits:",
		"memory": "\r\nnumber_of_cached_scripts:0\r\n"} {
		if got := info(section); !strings.Contains(got, want) {
			t.Errorf("%q has no %q", got, want)
		}
	}
	b.run("EVAL", "return 1", "1", "k")
	if got := info("memory"); !strings.Contains(got, "\r\nnumber_of_cached_scripts:1\r\n") {
		t.Error(got)
	}
}

// TestScriptMemory checks that cached scripts are limited by bytes, not by their number.
func TestScriptMemory(t *testing.T) {
	b := newRegisterFixture(t)
	const scriptCount = 2000
	for i := range scriptCount {
		b.run("EVAL", fmt.Sprint("return ", i), "1", "k")
	}
	if got := b.table.router.scripts.CachedCount(); got != scriptCount {
		t.Errorf("%d scripts are kept", got)
	}
	before := b.table.ScriptMemory()
	if b.table.Apply(Settings{ScriptMemory: before / 2}); b.table.ScriptMemory() > before/2 ||
		b.table.ScriptMemory() < before/4 {
		t.Errorf("they take %d bytes of %d", b.table.ScriptMemory(), before/2)
	}
}

// TestTimeLimitOfEval checks that one time limit covers all runs of a script and all scripts
// of a transaction.
func TestTimeLimitOfEval(t *testing.T) {
	b := newRegisterFixture(t)
	var allowance script.Allowance
	for _, body := range []string{"while true do end", "return redis.call('get', 'k')"} {
		p, errText, err := b.table.router.scripts.Program(t.Context(), b.client,
			(&rights.Client{Unrestricted: true}).NewPermissions(), []string{"EVAL", body, "1", "k"}, &allowance)
		if body != "while true do end" { // no time is left to compile it
			if !strings.HasPrefix(errText, "ERR script ran for longer than 1s") {
				t.Errorf("%s: %q, %v", body, errText, err)
			}
			continue
		}
		if errText != "" || err != nil {
			t.Fatal(errText, err)
		}
		for range 2 {
			if result, err := b.table.lockKeys.Engine.Run(t.Context(), p); err != nil ||
				!strings.HasPrefix(result.Reply.Str, "ERR script ran for longer than 1s") {
				t.Errorf("%+v, %v", result.Reply, err)
			}
		}
	}
}
