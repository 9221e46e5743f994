package conf

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestLockClassValues checks each error of a value of lock-class.
func TestLockClassValues(t *testing.T) {
	const nameRule = `; use 1 to 50 letters, digits, '_', '-' and '.', with a letter or digit first`
	long := strings.Repeat("x", 51)
	for value, want := range map[string]string{
		"billing=billing:*": "", "b.B-_9=x=[^=]": "", long[1:] + "=k": "", "7=*": "",
		"billing":           `has no = between a name and a glob; write it as in "billing=billing:*"`,
		"":                  `has no = between a name and a glob; write it as in "billing=billing:*"`,
		"=billing:*":        `has the name ""` + nameRule,
		"a b=billing:*":     `has the name "a b"` + nameRule,
		"-a=billing:*":      `has the name "-a"` + nameRule,
		"é=billing:*":       `has the name "é"` + nameRule,
		"a\xff=k":           `has the name "a\xff"` + nameRule,
		long + "=k":         `has the name "` + long + `"` + nameRule,
		"other=billing:*":   `has the name "other", which is for keys that match no glob; use another name`,
		"billing=":          `has the glob "", which is empty`,
		"billing=billing:[": `has the glob "billing:[", which has a [ without a ] (to match a [ in a key, write \[)`,
		"billing=a:*,b:*": `has the glob "a:*,b:*", which contains ','; give each glob separately (--lock-class billing=A ` +
			`--lock-class billing=B, REDLOCK_LOCK_CLASS="billing=A billing=B", or a line "- billing=A" for each in the file; ` +
			`to match a ',' in a key, write \,)`,
	} {
		got := ""
		if err := checkLockClass(value); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q: got %q, want %q", value, got, want)
		}
	}
}

// TestLockClassLimit checks that the 51st class is refused, with its source.
func TestLockClassLimit(t *testing.T) {
	var classes []string
	for i := range maxLockClasses + 1 {
		classes = append(classes, fmt.Sprintf("c%d=c%[1]d:*", i))
	}
	load := func(values []string) error {
		_, err := Load(Source{Flags: map[string][]string{"master": {"redis://a"}, "lock-class": values}})
		return err
	}
	if err := load(classes[1:]); err != nil {
		t.Errorf("50 classes: %v", err)
	}
	const want = "--lock-class: too many values: 51 are given, and the limit is 50; use globs that match more keys"
	if err := load(classes); err == nil || err.Error() != want {
		t.Errorf("51 classes: got %v, want %s", err, want)
	}
}

// TestLockClasses checks that values are split at the first =, and checks the warnings about them.
func TestLockClasses(t *testing.T) {
	c := validConfig()
	c.LockClass = []string{"a=k=*", "b=job:"}
	if got, want := c.LockClasses(), []LockClass{{"a", "k=*"}, {"b", "job:"}}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	want := []string{"lock-class: has no effect without admin, the address of the port that serves metrics",
		`lock-class: "job:" matches one key only; "job:*" matches all keys that begin with it`}
	if got := c.Warnings(); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
