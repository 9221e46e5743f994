//go:build integration

package locks

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// fenceCode returns the first block of code in a language in docs/fences.md.
func fenceCode(t *testing.T, language string) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/fences.md")
	kit.Must(t, err)
	_, afterStart, found := strings.Cut(string(text), "```"+language+"\n")
	code, _, isClosed := strings.Cut(afterStart, "```")
	if !found || !isClosed {
		t.Fatalf("docs/fences.md has no code in %s", language)
	}
	return code
}

// takeTwoFences returns the fences of two consecutive locks of a key, through two proxies.
func takeTwoFences(t *testing.T, key string) (older, newer int64) {
	t.Helper()
	f := kit.StartGuardedFleet(t, true, 2)
	var fences []int64
	for i, proxy := range f.Proxies {
		client := kit.Connect(t, proxy)
		kit.Do(t, client, "HELLO", "3")
		reply, _ := kit.Do(t, client, "LOCK", key, "*", "PX", "10000", "FENCE").(map[string]any)
		fence, _ := reply["fence"].(int64)
		if token, _ := reply["token"].(string); fence <= 0 || len(reply) != 3 {
			t.Fatalf("proxy %d: got %v", i, reply)
		} else {
			kit.Want(t, client, fence, "FENCE", key)
			kit.Want(t, client, int64(1), "UNLOCK", key, token)
		}
		info, _ := kit.Do(t, client, "LOCKINFO", key).(map[string]any)
		if info["fence"] != any(fence) {
			t.Errorf("LOCKINFO: %v, want the fence %d", info, fence)
		}
		fences = append(fences, fence)
	}
	return fences[0], fences[1]
}

// TestRefusalOfOldHolder checks that a database and a Redis refuse the writes of the holder of an
// older lock, with the code of docs/fences.md.
func TestRefusalOfOldHolder(t *testing.T) {
	older, newer := takeTwoFences(t, "report:7")
	t.Logf("fences %d, then %d", older, newer)
	writes := []struct {
		fence    int64
		body     string
		accepted bool
	}{{older, "first", true}, {newer, "second", true}, {older, "too late", false}, {newer, "third", true}}
	t.Run("SQL", func(t *testing.T) {
		if _, err := exec.LookPath("sqlite3"); err != nil {
			redistest.SkipMissing(t, "sqlite3 is not installed: apt-get install sqlite3")
		}
		file := filepath.Join(t.TempDir(), "db")
		query := func(sql string) string {
			output, err := exec.Command("sqlite3", "-batch", file, sql).CombinedOutput()
			if err != nil {
				t.Fatalf("%s: %v: %s", sql, err, output)
			}
			return strings.TrimSpace(string(output))
		}
		query("CREATE TABLE report (id INTEGER PRIMARY KEY, body TEXT, fence BIGINT NOT NULL DEFAULT 0); INSERT INTO report (id) VALUES (7);")
		body := ""
		for _, w := range writes {
			sql := strings.NewReplacer(":body", "'"+w.body+"'", ":fence", fmt.Sprint(w.fence), ":id",
				"7").Replace(fenceCode(t, "sql"))
			if rows := query(sql + "SELECT changes();"); (rows == "1") != w.accepted {
				t.Errorf("%s: %s rows", w.body, rows)
			}
			if w.accepted {
				body = w.body
			}
			if got := query("SELECT body FROM report WHERE id = 7;"); got != body {
				t.Errorf("after %q the report is %q", w.body, got)
			}
		}
	})
	t.Run("Lua", func(t *testing.T) {
		client := kit.Dial(t, kit.StartRedis(t).Addr())
		body := ""
		for _, w := range writes {
			reply := kit.Do(t, client, "EVAL", fenceCode(t, "lua"), "2", "report:7", "report:7:fence",
				fmt.Sprint(w.fence), w.body)
			if (reply == any(int64(1))) != w.accepted {
				t.Errorf("%s: %v", w.body, reply)
			}
			if w.accepted {
				body = w.body
			}
			kit.Want(t, client, body, "GET", "report:7")
		}
	})
}
