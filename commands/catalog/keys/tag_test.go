package keys

import "testing"

// TestTag checks the examples of Redis Cluster's specification, and further keys.
func TestTag(t *testing.T) {
	for key, want := range map[string]string{
		"{user1000}.following": "user1000", "foo{}{bar}": "", "foo{{bar}}zap": "{bar", "foo{bar}{zap}": "bar",
		"": "", "myLock": "", "a}b{c": "", "a}b{c}": "c", "{}": "", "x:{T}": "T", "{T": "", "T}": "",
		"redisson_unlock_latch:{my:lock}:1": "my:lock",
	} {
		if got, tagged := Tag(key); tagged != (want != "") || tagged && got != want {
			t.Errorf("%q: %q, %v, want %q", key, got, tagged, want)
		}
	}
	// A tag contains no tag itself. A key with the tag's name is therefore in the same cell.
	for _, key := range []string{"x{a{b}c}", "{{}}", "{a}{b}", "{a{b{c}"} {
		if tag, tagged := Tag(key); tagged {
			if inner, innerTagged := Tag(tag); innerTagged {
				t.Errorf("the tag %q of %q has the tag %q", tag, key, inner)
			}
		}
	}
}
