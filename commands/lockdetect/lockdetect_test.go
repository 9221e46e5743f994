package lockdetect_test

import (
	"bytes"
	"crypto/sha1"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"redlock-proxy/commands/catalog/keys"
	"redlock-proxy/commands/lockdetect"
	"redlock-proxy/conf"

	"pgregory.net/rapid"
)

// Reworded scripts with which libraries release locks.
const (
	delScript    = `if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("del",KEYS[1]) else return 0 end`
	redisPy      = "\n        local token = redis.call('get', KEYS[1])\n        if not token or token ~= ARGV[1] then\n            return 0\n        end\n        redis.call('del', KEYS[1])\n        return 1\n    "
	unlinkScript = "if ARGV[1] == redis.call( 'GET', KEYS[1] ) then\n\treturn redis.pcall('UNLINK', KEYS[1])\nend\nreturn 0"
)

func noLockKeys([]byte) bool { return false }

// count passes a command to a Detector, as a proxy with an upstream does.
func count(n *lockdetect.Detector, isLockKey func([]byte) bool, words ...string) {
	args := make([][]byte, len(words))
	for i, w := range words {
		args[i] = []byte(w)
	}
	if lockdetect.IsCandidate(args[0], len(args)) {
		n.Count(args[:min(lockdetect.MaxWords, len(args))], isLockKey)
	}
}

// TestShapes checks that a Detector counts commands on locks, but not similar commands.
func TestShapes(t *testing.T) {
	for _, test := range []struct {
		words           []string
		locks, releases int64
	}{
		{[]string{"SET", "k", "t", "NX", "PX", "30000"}, 1, 0},
		{[]string{"set", "k", "t", "px", "30000", "nx"}, 1, 0},
		{[]string{"Set", "k", "t", "EX", "30", "NX", "GET"}, 1, 0},
		{[]string{"SET", "k", "t", "EXAT", "9999999999", "NX"}, 1, 0},
		{[]string{"EVAL", delScript, "1", "k", "t"}, 0, 1},
		{[]string{"eval", redisPy, "1", "k", "t"}, 0, 1},
		{[]string{"EVAL", unlinkScript, "1", "k", "t"}, 0, 1},
		{[]string{"DELEX", "k", "IFEQ", "t"}, 0, 1},
		{[]string{"delifeq", "k", "t"}, 0, 1},
		{[]string{"delex", "k", "IFDEQ", "b6acb9d84a38ff74"}, 0, 1},
		{[]string{"MSETEX", "2", "k", "t", "l", "t", "NX", "PX", "1000"}, 1, 0},
		{[]string{"MSETEX", "2", "k", "t", "l", "t", "PX", "1000"}, 0, 0},
		{[]string{"MSETEX", "9", "k", "t", "NX", "PX", "1000"}, 0, 0},
		{[]string{"MSETEX", "-1", "k", "t", "NX", "PX", "1000"}, 0, 0},
		{[]string{"SET", "k", "t", "NX"}, 0, 0},
		{[]string{"SET", "k", "t", "XX", "PX", "30000"}, 0, 0},
		{[]string{"SET", "k", "NX", "PX", "30000", "GET"}, 0, 0},
		{[]string{"SET", "k", "t", "PX", "30000"}, 0, 0},
		{[]string{"SETNX", "k", "t"}, 0, 0},
		{[]string{"DELEX", "k"}, 0, 0},
		{[]string{"GETDEL", "k"}, 0, 0},
		{[]string{"EVAL", delScript, "0"}, 0, 0},
		{[]string{"EVAL", "return redis.call('get', KEYS[1])", "1", "k"}, 0, 0},
		{[]string{"EVAL", "if redis.call('get', KEYS[1]) == ARGV[1] then return 1 end", "1", "k", "t"}, 0, 0},
		{[]string{"EVAL", delScript + strings.Repeat(" ", 4000), "1", "k", "t"}, 0, 0},
		{[]string{"EVALSHA", strings.Repeat("0", 40), "1", "k", "t"}, 0, 0},
		{[]string{"SCRIPT", "LOAD", delScript}, 0, 0},
		{[]string{"EVAL"}, 0, 0},
		{[]string{"DELIFEQ"}, 0, 0},
		{[]string{"EVAL", "", "", ""}, 0, 0},
		{[]string{"SCRIPT", "", ""}, 0, 0},
		{[]string{"DELEX", "", "", ""}, 0, 0},
	} {
		n := lockdetect.New(slog.New(slog.DiscardHandler))
		count(n, noLockKeys, test.words...)
		if locks, releases := n.Counts(); locks != test.locks || releases != test.releases {
			t.Errorf("%q: counted %d and %d, want %d and %d", test.words, locks, releases, test.locks, test.releases)
		}
		count(n, func([]byte) bool { return true }, test.words...)
		if locks, releases := n.Counts(); locks != test.locks || releases != test.releases {
			t.Errorf("%q of a lock key was counted, too", test.words)
		}
	}
}

// TestReleaseByDigest checks that a Detector recognizes a known script by its SHA-1, in any case.
func TestReleaseByDigest(t *testing.T) {
	digest := fmt.Sprintf("%x", sha1.Sum([]byte(delScript)))
	for _, first := range [][]string{{"SCRIPT", "LOAD", delScript}, {"EVAL", delScript, "1", "lock:a", "t"}} {
		n := lockdetect.New(slog.New(slog.DiscardHandler))
		count(n, noLockKeys, "EVALSHA", digest, "1", "lock:a", "t")
		count(n, noLockKeys, first...)
		_, before := n.Counts()
		count(n, noLockKeys, "EVALSHA", digest, "1", "lock:a", "t")
		count(n, noLockKeys, "evalsha", strings.ToUpper(digest), "1", "lock:a", "t")
		if _, releases := n.Counts(); releases != before+2 {
			t.Errorf("after %q: counted %d releases, want %d", first[0], releases, before+2)
		}
	}
}

// TestLogOnce checks that a Detector logs each pattern once, without tokens and without the parts
// that differ from key to key.
func TestLogOnce(t *testing.T) {
	var log bytes.Buffer
	n := lockdetect.New(slog.New(slog.NewTextHandler(&log, nil)))
	for i := range 1000 {
		count(n, noLockKeys, "SET", fmt.Sprintf("order:%d:lock", i), "secret-token", "NX", "PX", "30000")
		count(n, noLockKeys, "EVAL", delScript, "1", fmt.Sprintf("order:%d:lock", i), "secret-token")
		count(n, noLockKeys, "SET", "job:report", "secret-token", "EX", "30", "NX")
	}
	if got := log.String(); strings.Count(got, "\n") != 2 || strings.Contains(got, "secret") ||
		!strings.Contains(got, "pattern=order:*:lock") || !strings.Contains(got, "pattern=job:report") {
		t.Errorf("got\n%swant a line for order:*:lock and one for job:report", got)
	}
	want := []lockdetect.Pattern{{Glob: "order:*:lock", Locks: 1000, Releases: 1000}, {Glob: "job:report", Locks: 1000}}
	if got := n.Patterns(); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got patterns %v, want %v", got, want)
	}
}

// TestDetectorLimits checks that memory and log are bounded for any keys, and that all uses count.
func TestDetectorLimits(t *testing.T) {
	var log bytes.Buffer
	n := lockdetect.New(slog.New(slog.NewTextHandler(&log, nil)))
	letters := func(i int) string { return strings.Map(func(r rune) rune { return r - '0' + 'a' }, fmt.Sprint(i)) }
	const keys = 20000
	for i := range keys {
		count(n, noLockKeys, "SET", letters(i%200)+":"+letters(i)+":lock", "t", "NX", "PX", "1")
		count(n, noLockKeys, "EVAL", delScript+fmt.Sprint("--", i), "1", "k", "t")
	}
	locks, releases := n.Counts()
	if locks != keys || releases != keys {
		t.Errorf("counted %d and %d, want %d of each", locks, releases, keys)
	}
	if got := len(n.Patterns()); got > 32*9 {
		t.Errorf("%d patterns are kept, want at most %d", got, 32*9)
	}
	if got := strings.Count(log.String(), "\n"); got > 32*9+1 {
		t.Errorf("%d lines are logged, want at most %d", got, 32*9+1)
	}
}

// TestGlobsAsSetting checks that the logged glob matches the key and is a valid value of lock-keys.
func TestGlobsAsSetting(t *testing.T) {
	part := rapid.OneOf(rapid.SampledFrom([]string{"lock", "job", "a1", "*", "[", "\\", ",", " ", "^", "$", ".",
		"..", ":", "-", "(a|b)", "é", "\xff", "}{", "'", `"`, "+", strings.Repeat("x", 30)}),
		rapid.StringN(0, 3, -1))
	rapid.Check(t, func(t *rapid.T) {
		key := strings.Join(rapid.SliceOfN(part, 0, 14).Draw(t, "parts"),
			rapid.SampledFrom([]string{"", ":", ".", "-"}).Draw(t, "between"))
		wide := rapid.Bool().Draw(t, "with many other keys")
		n := lockdetect.New(slog.New(slog.DiscardHandler))
		if wide {
			prefix := key[:strings.IndexAny(key+":", ":/.|#-_{}@=~")]
			for c := range 9 {
				rest := key[len(prefix):min(len(key), len(prefix)+1)] + strings.Repeat("abcdefghi"[c:c+1], 3)
				count(n, noLockKeys, "SET", prefix+rest, "t", "NX", "PX", "1")
			}
		}
		count(n, noLockKeys, "SET", key, "t", "NX", "PX", "1")
		covered := false
		for _, p := range n.Patterns() {
			config := conf.Default()
			config.Masters, config.LockKeys = []string{"redis://a"}, []string{p.Glob}
			if err := config.Validate(); err != nil {
				t.Fatalf("key %q: %v", key, err)
			}
			globs := keys.NewPatterns(p.Glob)
			covered = covered || globs.Match([]byte(key))
		}
		if !covered {
			t.Fatalf("key %q: none of %v covers it", key, n.Patterns())
		}
	})
}

// BenchmarkIsCandidate measures IsCandidate, which a proxy with an upstream calls for every
// command.
func BenchmarkIsCandidate(b *testing.B) {
	get, set := []byte("GET"), []byte("SET")
	n := 0
	for b.Loop() {
		if lockdetect.IsCandidate(get, 2) || lockdetect.IsCandidate(set, 3) {
			n++
		}
	}
	if n > 0 {
		b.Error(n)
	}
}
