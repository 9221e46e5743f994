package messages

import (
	"strings"
	"testing"
)

func FuzzDecode(f *testing.F) {
	f.Add(Message{Source: strings.Repeat("a", sourceSize), Number: 3, PreviousNumber: 2, LastDecided: 1, Shard: true, Channel: "c\n",
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
		if m.Number == 0 || m.PreviousNumber >= m.Number || m.LastDecided >= m.Number || len(m.Source) != sourceSize {
			t.Fatalf("%+v", m)
		}
		if decoded, err := decode(m.Encode()); err != nil || decoded != m {
			t.Fatalf("%+v, %v, want %+v", decoded, err, m)
		}
	})
}

// TestHead checks that the longest head of a message is within its limit.
func TestHead(t *testing.T) {
	m := Message{Source: strings.Repeat("f", sourceSize), Number: 1<<63 - 1, PreviousNumber: 1<<63 - 2, LastDecided: 1<<63 - 2,
		Shard: true, Channel: strings.Repeat("c", MaxSize)}
	if head := len(m.Encode()) - MaxSize; head > headSize {
		t.Errorf("%d bytes", head)
	}
	if got, err := decode(m.Encode()); err != nil || got != m {
		t.Error(err)
	}
}

// TestSource checks that LastDecided covers a number only when that number and all lower numbers
// are decided.
func TestSource(t *testing.T) {
	s := NewSource()
	var a, b uint64
	first, second := s.Begin(Message{}, &a), s.Begin(Message{}, &b)
	s.End(second)
	third := s.Begin(Message{}, &b)
	s.End(first)
	fourth := s.Begin(Message{}, &a)
	if first.PreviousNumber != 0 || third.PreviousNumber != 2 || third.LastDecided != 0 || fourth.PreviousNumber != 1 || fourth.LastDecided != 2 ||
		fourth.Number != 4 {
		t.Errorf("%+v %+v %+v %+v", first, second, third, fourth)
	}
}
