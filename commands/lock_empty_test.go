package commands

import "testing"

// TestEmptyNames checks that the proxy refuses an empty key or token without a request to the
// masters.
func TestEmptyNames(t *testing.T) {
	b := newFixture(t)
	for _, c := range []struct {
		words []string
		want  string
	}{
		{[]string{"LOCK", "", "t", "PX", "1000"}, "-ERR empty key in 'lock' command\r\n"},
		{[]string{"LOCK", "k", "", "PX", "1000"}, "-ERR empty token in 'lock' command\r\n"},
		{[]string{"LOCK", "k", "", "PX", "x"}, "-ERR empty token in 'lock' command\r\n"},
		{[]string{"EXTEND", "", "t", "PX", "1000"}, "-ERR empty key in 'extend' command\r\n"},
		{[]string{"EXTEND", "k", "", "PX", "1000"}, "-ERR empty token in 'extend' command\r\n"},
		{[]string{"UNLOCK", "", "t"}, "-ERR empty key in 'unlock' command\r\n"},
		{[]string{"UNLOCK", "k", ""}, "-ERR empty token in 'unlock' command\r\n"},
	} {
		if got := b.ask(c.words...); got != c.want {
			t.Errorf("%q: %q, want %q", c.words, got, c.want)
		}
	}
	b.expectCalls()
}
