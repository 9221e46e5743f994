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
		if again, err := decode(m.Encode()); err != nil || again != m {
			t.Fatalf("%+v, %v, want %+v", again, err, m)
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
	one, two := s.Begin(Message{}, &a), s.Begin(Message{}, &b)
	s.End(two)
	three := s.Begin(Message{}, &b)
	s.End(one)
	four := s.Begin(Message{}, &a)
	if one.After != 0 || three.After != 2 || three.Decided != 0 || four.After != 1 || four.Decided != 2 ||
		four.Number != 4 {
		t.Errorf("%+v %+v %+v %+v", one, two, three, four)
	}
}
