package clientlist

import "testing"

// TestParse checks that different spellings of an address are equal.
func TestParse(t *testing.T) {
	list := Parse("id=3 addr=[::ffff:127.0.0.1]:5 laddr=127.0.0.1:1 fd=8 name= flags=N lib-name=go\nid=4 addr=/tmp/s:0 name=x flags=S\n")
	if len(list) != 2 || list[0].Addr() != "127.0.0.1:5" || list[0].String() != "127.0.0.1:5 lib-name=go" ||
		list[1]["flags"] != "S" || list[1].String() != "/tmp/s:0 name=x" {
		t.Errorf("%v", list)
	}
}
