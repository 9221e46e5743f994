package command

import (
	"slices"
	"testing"
	"time"
)

func TestReplies(t *testing.T) {
	tests := []struct {
		title        string
		write        func(r *Reply)
		resp2, resp3 string
	}{
		{"integer", func(r *Reply) { r.WriteInt(-42) }, ":-42\r\n", ":-42\r\n"},
		{"bulk", func(r *Reply) { r.WriteBulk("a\r\n\x00b") }, "$5\r\na\r\n\x00b\r\n", "$5\r\na\r\n\x00b\r\n"},
		{"empty bulk", func(r *Reply) { r.WriteBulk("") }, "$0\r\n\r\n", "$0\r\n\r\n"},
		{"text", func(r *Reply) { r.WriteText("ünf\n") }, "$5\r\nünf\n\r\n", "=9\r\ntxt:ünf\n\r\n"},
		{"status", func(r *Reply) { r.WriteStatus("OK") }, "+OK\r\n", "+OK\r\n"},
		{"error", func(r *Reply) { r.WriteError("ERR no") }, "-ERR no\r\n", "-ERR no\r\n"},
		{"line ends in an error", func(r *Reply) { r.WriteError("ERR a\r\nb\n\rc\x00") }, "-ERR a  b  c \r\n",
			"-ERR a  b  c \r\n"},
		{"null", (*Reply).WriteNull, "$-1\r\n", "_\r\n"},
		{"array", func(r *Reply) { r.WriteArray(1); r.WriteInt(1) }, "*1\r\n:1\r\n", "*1\r\n:1\r\n"},
		{"empty array", func(r *Reply) { r.WriteArray(0) }, "*0\r\n", "*0\r\n"},
		{"map", func(r *Reply) { r.WriteMap(1); r.WriteBulk("k"); r.WriteNull() }, "*2\r\n$1\r\nk\r\n$-1\r\n", "%1\r\n$1\r\nk\r\n_\r\n"},
		{"large map", func(r *Reply) { r.WriteMap(100) }, "*200\r\n", "%100\r\n"},
		{"set", func(r *Reply) { r.WriteSet(2); r.WriteInt(1); r.WriteInt(2) }, "*2\r\n:1\r\n:2\r\n", "~2\r\n:1\r\n:2\r\n"},
		{"strings", func(r *Reply) { r.WriteStrings([]string{"a", ""}) }, "*2\r\n$1\r\na\r\n$0\r\n\r\n",
			"*2\r\n$1\r\na\r\n$0\r\n\r\n"},
		{"statuses", func(r *Reply) { r.WriteStatuses([]string{"a", "b c"}) }, "*2\r\n+a\r\n+b c\r\n", "*2\r\n+a\r\n+b c\r\n"},
		{"raw", func(r *Reply) { r.WriteRaw([]byte(",1.5\r\n")) }, ",1.5\r\n", ",1.5\r\n"},
	}
	for _, test := range tests {
		for proto, want := range map[int]string{2: test.resp2, 3: test.resp3} {
			r := Reply{Bytes: []byte("+before\r\n"), Proto: proto}
			test.write(&r)
			if got := string(r.Bytes); got != "+before\r\n"+want {
				t.Errorf("%s in RESP%d: %q, want %q after +before", test.title, proto, got, want)
			}
		}
	}
}

// TestUndeliveredReplies checks that delivered grants stay. UndoUndelivered must undo all other
// grants once, in order.
func TestUndeliveredReplies(t *testing.T) {
	var undoneReplies []int
	undo := func(n int) func() { return func() { undoneReplies = append(undoneReplies, n) } }
	var r Reply
	r.WriteInt(1)
	r.OnUndelivered(undo(1))
	r.NoteDelivered()
	for n := 2; n <= 4; n++ {
		r.WriteInt(int64(n))
		r.OnUndelivered(undo(n))
	}
	r.UndoUndelivered()
	r.UndoUndelivered()
	if want := []int{2, 3, 4}; !slices.Equal(undoneReplies, want) || len(r.Bytes) != 0 {
		t.Errorf("undone %v, want %v; left %q", undoneReplies, want, r.Bytes)
	}
}

// TestPartialWrite checks that, after a partial write, a grant stays if the socket took its whole
// reply. UndoUndelivered must undo all other grants. A truncated reply ends where the previous
// reply ends.
func TestPartialWrite(t *testing.T) {
	const status = len("+OK\r\n")
	write := func(undoneReplies *[]int) *Reply {
		r := &Reply{Bytes: []byte("+before\r\n")}
		for n := range 4 {
			at := len(r.Bytes)
			r.WriteStatus("OK")
			r.OnUndelivered(func() { *undoneReplies = append(*undoneReplies, n) })
			if n == 2 {
				r.Truncate(at)
			}
		}
		return r
	}
	for sent, want := range map[int][]int{
		0:                                 {0, 1, 2, 3},
		len("+before\r\n"):                {0, 1, 2, 3},
		len("+before\r\n+OK\r"):           {0, 1, 2, 3},
		len("+before\r\n") + status:       {1, 2, 3},
		len("+before\r\n") + 2*status - 1: {1, 2, 3},
		len("+before\r\n") + 2*status:     {3},
		len("+before\r\n") + 3*status - 1: {3},
		len("+before\r\n") + 3*status:     nil,
	} {
		var undone []int
		r := write(&undone)
		whole := string(r.Bytes)
		r.NoteSent(sent)
		if string(r.Bytes) != whole[sent:] {
			t.Errorf("%d bytes were sent: left %q", sent, r.Bytes)
		}
		r.UndoUndelivered()
		if !slices.Equal(undone, want) {
			t.Errorf("%d bytes were sent: undone %v, want %v", sent, undone, want)
		}
		undone = nil
		r = write(&undone)
		for range sent { // one by one
			r.NoteSent(1)
		}
		if r.UndoUndelivered(); !slices.Equal(undone, want) {
			t.Errorf("%d bytes were sent one by one: undone %v, want %v", sent, undone, want)
		}
	}
}

// TestUpdateValidity checks that a validity is the time that remains when the proxy
// sends its reply, and that the bytes around it are unchanged.
func TestUpdateValidity(t *testing.T) {
	for _, test := range []struct {
		delay time.Duration
		want  string
	}{
		{0, ":1000"}, {1, ":999"}, {time.Millisecond, ":999"}, {901 * time.Millisecond, ":99"}, {time.Second, ":0"},
		{time.Hour, ":0"}, {-24 * time.Hour, ":86401000"},
	} {
		now := time.Now()
		r := &Reply{Proto: 2, Now: func() time.Time { return now }}
		if r.UpdateValidity(); r.IsUrgent() {
			t.Error("it is urgent without a validity")
		}
		undone := 0
		undo := func() { undone++ }
		r.WriteStatus("OK")
		r.OnUndelivered(undo)
		r.WriteMap(2)
		r.WriteBulk("validity")
		r.WriteValidity(time.Second)
		r.WriteBulk("token")
		r.WriteBulk("t")
		r.OnUndelivered(undo)
		now = now.Add(test.delay)
		for range 2 {
			r.UpdateValidity()
			want := "+OK\r\n*4\r\n$8\r\nvalidity\r\n" + test.want + "\r\n$5\r\ntoken\r\n$1\r\nt\r\n"
			if got := string(r.Bytes); got != want || !r.IsUrgent() {
				t.Errorf("%v later: %q, urgent %v", test.delay, got, r.IsUrgent())
			}
		}
		r.NoteSent(len(r.Bytes) - 1)
		if r.UndoUndelivered(); undone != 1 || r.IsUrgent() {
			t.Errorf("%v later: %d undone, urgent %v", test.delay, undone, r.IsUrgent())
		}
		r.WriteValidity(time.Second)
		if r.Truncate(1); r.IsUrgent() {
			t.Error("it is urgent though it was taken back")
		}
	}
}
