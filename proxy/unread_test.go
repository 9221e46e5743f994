package proxy

import "testing"

// TestOldestUnreadIsCutOff: if too much is unread, the client that has not read for longest is cut
// off, and its unread bytes no longer count.
func TestOldestUnreadIsCutOff(t *testing.T) {
	u := &unread{}
	u.setLimit(100)
	var cut []string
	client := func(name string) *unreadClient { return &unreadClient{cut: func() { cut = append(cut, name) }} }
	a, b, c := client("a"), client("b"), client("c")
	u.add(a, 40)
	u.add(b, 40)
	u.done(a, 40) // it has read
	u.add(a, 20)
	u.add(c, 40)
	if held, _ := u.stats(); held != 100 || len(cut) > 0 {
		t.Fatalf("%d are held, %v cut off", held, cut)
	}
	u.add(a, 1)
	u.done(b, 40) // as its write ends
	if held, cuts := u.stats(); held != 61 || cuts != 1 || len(cut) != 1 || cut[0] != "b" {
		t.Errorf("%d are held, %d cut off: %v", held, cuts, cut)
	}
	u.add(b, 30) // more of it is discarded, too
	u.done(b, 30)
	u.setLimit(50)
	if held, cuts := u.stats(); held != 40 || cuts != 2 || cut[1] != "a" {
		t.Errorf("%d are held, %d cut off: %v", held, cuts, cut)
	}
}
