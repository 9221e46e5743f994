package conf

import (
	"strings"
	"testing"
)

// TestLockGlobs checks that the loader refuses globs that would protect nothing, with a hint, and
// accepts all sensible globs.
func TestLockGlobs(t *testing.T) {
	for glob, want := range map[string]string{
		"lock:*,job:*":          `contains ','; give each glob separately`,
		"lock:* job:*":          `contains ' '; give each glob separately`,
		"lock:*;job:*":          `contains ';'; give each glob separately`,
		"{lock,job}:*":          `contains ','`,
		"lock:[":                "without a ]",
		"lock:[a-":              "without a ]",
		`lock:[a\]`:             "without a ]",
		"lock:[]*":              "empty set of characters",
		"lock:[^]":              "empty set of characters",
		"lock:[!a]*":            "[^…]",
		`lock:\`:                `ends with a single \`,
		"'lock:*'":              "quotes",
		`"lock:*"`:              "quotes",
		"lock:.*":               `"lock:*" instead of "lock:.*"`,
		".*":                    "is a regular expression",
		".*:lock":               "is a regular expression",
		"lock:.+":               "is a regular expression",
		"^lock:":                "is a regular expression",
		"lock:*$":               "is a regular expression",
		`lock:\d+`:              "is a regular expression",
		`lock:\w*`:              "is a regular expression",
		"lock:[a-z]+":           "is a regular expression",
		"lock:[0-9]{3}":         "is a regular expression",
		"(lock|job):*":          "is a regular expression",
		"(?i)lock:*":            "is a regular expression",
		"/^lock:.*$/":           "is a regular expression",
		"":                      "is empty",
		"lock:*":                "",
		"*":                     "",
		"*:lock":                "",
		"lock.*":                "",
		"app.lock.*":            "",
		"*.lock":                "",
		"*.*":                   "",
		"leader":                "",
		"lock:":                 "",
		"lock:[abc]?":           "",
		"lock:[^a]*":            "",
		"lock:[a,b]:*":          "",
		"lock:[.+]*":            "",
		`lock:\,*`:              "",
		`lock:\ *`:              "",
		`lock:\.*`:              "",
		`lock:\[*`:              "",
		`lock:[\]]*`:            "",
		"{user}:lock":           "",
		"a|b:*":                 "",
		"lock:c++":              "",
		"lock:*!":               "",
		"lock:\xff*":            "",
		"Lock:(a)":              "",
		`C:\\locks\\*`:          "",
		"it's:*":                "",
		"price$:*":              "",
		"lock:é*":               "",
		strings.Repeat("a*", 9): "",
	} {
		err := lockGlobRule("lock-keys", "")(glob)
		switch {
		case want == "" && err != nil:
			t.Errorf("%q: got %v, want no error", glob, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%q: got %v, want an error with %s", glob, err, want)
		}
	}
}

// TestSourceInLockGlobError checks that the error names the source of the glob, and gives a
// hint.
func TestSourceInLockGlobError(t *testing.T) {
	_, err := Load(Source{Flags: map[string][]string{"master": {"redis://a", "redis://b", "redis://c"},
		"lock-keys": {"lock:*,job:*"}}})
	want := `--lock-keys: "lock:*,job:*" contains ','; give each glob separately ` +
		`(--lock-keys A --lock-keys B, REDLOCK_LOCK_KEYS="A B", or a line "- A" for each in the file; to match a ',' in a key, write \,)`
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	c := Default()
	c.Masters, c.LockKeys = []string{"redis://a", "redis://b", "redis://c"}, []string{"lock:", "job:*"}
	if got := c.Warnings(); len(got) != 1 ||
		got[0] != `lock-keys: "lock:" matches one key only; "lock:*" matches all keys that begin with it` {
		t.Errorf("got warnings %q, want one about lock:", got)
	}
}
