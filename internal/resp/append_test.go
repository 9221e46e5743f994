package resp

import "testing"

func TestAppendCommand(t *testing.T) {
	got := string(AppendCommand([]byte("x"), "SET", "k\r\n", 7, int64(-1<<63)))
	if want := "x*4\r\n$3\r\nSET\r\n$3\r\nk\r\n\r\n$1\r\n7\r\n$20\r\n-9223372036854775808\r\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
