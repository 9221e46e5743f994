package sharing

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"redlock-proxy/commands/catalog/spec"
	"redlock-proxy/internal/redistest"
	"redlock-proxy/internal/resp"
)

func TestMay(t *testing.T) {
	for name, want := range map[string]bool{
		"get": true, "SET": true, "incr": true, "MGet": true, "ping": true, "echo": true, "publish": true, "lpop": true, "xadd": true,
		"eval": false, "EVALSHA": false, "fcall": false, "script": false, "function": false, "wait": false, "waitaof": false,
		"blpop": false, "bzmpop": false, "xread": false, "xreadgroup": false, "subscribe": false, "multi": false, "exec": false,
		"watch": false, "select": false, "auth": false, "hello": false, "client": false, "reset": false, "quit": false, "monitor": false,
		"debug": false, "shutdown": false, "sync": false, "psync": false, "replicaof": false, "module": false, "cluster": false,
		"config": false, "acl": false, "json.get": false, "nosuch": false, "": false, "get\x00": false,
	} {
		if May([]byte(name)) != want {
			t.Errorf("%q may share: %v", name, !want)
		}
	}
	for c := range spec.All() {
		if May([]byte(c.Name)) && (c.Effect != spec.None || c.Does(spec.Blocks) || c.Arity == 0) {
			t.Errorf("%s may share", c.Name)
		}
		if May([]byte(c.Name)) && MayLeave([]byte(c.Name)) {
			t.Errorf("%s may share, and leave something behind", c.Name)
		}
	}
}

// What Redis itself says of commands: those that belong to a connection are not for scripts, and those that wait say so.
func TestMayByTheServersWord(t *testing.T) {
	server := redistest.New(t, redistest.Options{})
	client := dialed(t, server.Addr())
	answer, err := client.Do("COMMAND")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, one := range answer.([]any) {
		words := one.([]any)
		name := words[0].(string)
		if !May([]byte(name)) {
			continue
		}
		seen++
		for _, flag := range words[2].([]any) {
			if slices.Contains([]string{"blocking", "noscript", "admin", "no_multi", "no_auth"}, flag.(string)) && name != "publish" {
				t.Errorf("%s may share, and is %s", name, flag)
			}
		}
	}
	if seen < 130 {
		t.Errorf("%d of the server's commands may share", seen)
	}
}

func dialed(t *testing.T, addr string) *redistest.Client {
	t.Helper()
	client, err := redistest.Dial(addr, patience)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

func TestWhole(t *testing.T) {
	for p, want := range map[string]bool{
		"*1\r\n$4\r\nPING\r\n":                     true,
		"*2\r\n$4\r\nECHO\r\n$0\r\n\r\n":           true,
		"*2\r\n$3\r\nGET\r\n$4\r\n\r\n\r\n\r\n":    true,
		"":                                         false,
		"PING\r\n":                                 false,
		"*0\r\n":                                   false,
		"*-1\r\n":                                  false,
		"*01\r\n$4\r\nPING\r\n":                    false,
		"*+1\r\n$4\r\nPING\r\n":                    false,
		"*1\r\n$04\r\nPING\r\n":                    false,
		"*1\r\n$4\r\nPINGxx":                       false,
		"*1\r\n$4\r\nPING\r\n\r\n":                 false,
		"*1\r\n$4\nPING\r\n":                       false,
		"*1\n$4\r\nPING\r\n":                       false,
		"*1\r\n$4\r\nPIN":                          false,
		"*1\r\n$4\r\nPING\r":                       false,
		"*1\r\n$5\r\nPING\r\n":                     false,
		"*1\r\n$3\r\nPING\r\n":                     false,
		"*2\r\n$4\r\nPING\r\n":                     false,
		"*1\r\n$4\r\nPING\r\n*1\r\n$4\r\nPING\r\n": false,
		"*1\r\n:4\r\nPING\r\n":                     false,
		"*1\r\n$-1\r\n":                            false,
		"*1\r\n$18446744073709551620\r\nPING\r\n":  false,
		"*4294967297\r\n$4\r\nPING\r\n":            false,
	} {
		if Whole([]byte(p)) != want {
			t.Errorf("%q is whole: %v", p, !want)
		}
	}
	long := resp.AppendWords(nil, "SET", "k", strings.Repeat("v", MaxFrame-40))
	if !Whole(long) || Whole(resp.AppendWords(nil, "SET", "k", strings.Repeat("v", MaxFrame))) {
		t.Error("the bound is not MaxFrame")
	}
}

// What is whole is one frame for the scanner of requests, too, and is written again as it came.
func FuzzWhole(f *testing.F) {
	f.Add([]byte("*2\r\n$3\r\nGET\r\n$1\r\nk\r\n"))
	f.Add([]byte("*1\r\n$4\r\nPINGxx*1\r\n$4\r\nPING\r\n"))
	f.Add([]byte("*02\r\n$+3\r\nGET\r\n$1\r\nk\r\n"))
	f.Fuzz(func(t *testing.T, p []byte) {
		if !Whole(p) {
			return
		}
		words, count, size := resp.Words(nil, p, 1<<20)
		if count != len(words) || size != len(p) {
			t.Fatalf("%q: %d words of %d, in %d bytes", p, len(words), count, size)
		}
		var texts []string
		for _, w := range words {
			texts = append(texts, string(w))
		}
		if again := resp.AppendWords(nil, texts...); !bytes.Equal(again, p) {
			t.Fatalf("%q is written %q", p, again)
		}
	})
}
