package proxy

import "testing"

// TestClientWithOldestUnreadRepliesIsDisconnected checks that if too many bytes are unread, the
// client whose replies have been unread for the longest time is disconnected. Its unread bytes no
// longer count.
func TestClientWithOldestUnreadRepliesIsDisconnected(t *testing.T) {
	u := &unreadReplies{}
	u.setLimit(100)
	var disconnectedNames []string
	client := func(name string) *unreadClient {
		return &unreadClient{disconnect: func() { disconnectedNames = append(disconnectedNames, name) }}
	}
	a, b, c := client("a"), client("b"), client("c")
	u.add(a, 40)
	u.add(b, 40)
	u.remove(a, 40) // a has read its replies
	u.add(a, 20)
	u.add(c, 40)
	if total, _ := u.stats(); total != 100 || len(disconnectedNames) > 0 {
		t.Fatalf("%d are held, %v cut off", total, disconnectedNames)
	}
	u.add(a, 1)
	u.remove(b, 40) // the write to b has failed
	if total, disconnects := u.stats(); total != 61 || disconnects != 1 || len(disconnectedNames) != 1 || disconnectedNames[0] != "b" {
		t.Errorf("%d are held, %d cut off: %v", total, disconnects, disconnectedNames)
	}
	u.add(b, 30) // further bytes of a disconnected client are ignored
	u.remove(b, 30)
	u.setLimit(50)
	if total, disconnects := u.stats(); total != 40 || disconnects != 2 || disconnectedNames[1] != "a" {
		t.Errorf("%d are held, %d cut off: %v", total, disconnects, disconnectedNames)
	}
}
