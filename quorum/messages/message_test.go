package messages

import (
	"strings"
	"testing"
)

func FuzzDecode(f *testing.F) {
	f.Add(Message{Source: strings.Repeat("a", sourceSize), Number: 3, After: 2, Decided: 1, Shard: true, Channel: "c\n",
		Payload: "\x00 p"}.Encode())
	f.Add("1 aaaaaaaaaaaaaaaa m 1 0 0 0\n")
	f.Add("1 aaaaaaaaaaaaaaaa m 1 1 0 0\n")
	f.Add("1 aaaaaaaaaaaaaaaa m 1 0 0 9\nshort")
	f.Add("1 aaaaaaaaaaaaaaaa m 9223372036854775808 0 0 0\n")
	f.Add("2 aaaaaaaaaaaaaaaa m 1 0 0 0\n")
	f.Fuzz(func(t *testing.T, text string) {
		m, err := decode(text)
		if err != nil {
			return
		}
		if m.Number == 0 || m.After >= m.Number || m.Decided >= m.Number || len(m.Source) != sourceSize {
			t.Fatalf("%+v", m)
		}
		if decoded, err := decode(m.Encode()); err != nil || decoded != m {
			t.Fatalf("%+v, %v, want %+v", decoded, err, m)
		}
	})
}

// TestHead: the longest head of a message is within its limit.
func TestHead(t *testing.T) {
	m := Message{Source: strings.Repeat("f", sourceSize), Number: 1<<63 - 1, After: 1<<63 - 2, Decided: 1<<63 - 2,
		Shard: true, Channel: strings.Repeat("c", MaxSize)}
	if head := len(m.Encode()) - MaxSize; head > headSize {
		t.Errorf("%d bytes", head)
	}
	if got, err := decode(m.Encode()); err != nil || got != m {
		t.Error(err)
	}
}

// TestSource: a number counts as decided when it and all lower numbers are.
func TestSource(t *testing.T) {
	s := NewSource()
	var a, b uint64
	first, second := s.Begin(Message{}, &a), s.Begin(Message{}, &b)
	s.End(second)
	third := s.Begin(Message{}, &b)
	s.End(first)
	fourth := s.Begin(Message{}, &a)
	if first.After != 0 || third.After != 2 || third.Decided != 0 || fourth.After != 1 || fourth.Decided != 2 ||
		fourth.Number != 4 {
		t.Errorf("%+v %+v %+v %+v", first, second, third, fourth)
	}
}
