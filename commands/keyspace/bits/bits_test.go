package bits

import (
	"math"
	"math/rand/v2"
	"testing"
)

// plain has each bit of a text as a number.
func plain(text string) (all []int64) {
	for i := range uint64(len(text)) * 8 {
		all = append(all, Get(text, i))
	}
	return all
}

// Counting and looking for bits byte by byte is the same as bit by bit.
func TestRangesOfBits(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		text := make([]byte, 1+random.IntN(6))
		for i := range len(text) {
			text[i] = []byte{0, 0xff, byte(random.IntN(256))}[random.IntN(3)]
		}
		all := plain(string(text))
		from, to := random.Int64N(int64(len(all))), random.Int64N(int64(len(all)))
		count, first := int64(0), [2]int64{-1, -1}
		for i := from; i <= to; i++ {
			count += all[i]
			if bit := all[i]; first[bit] < 0 {
				first[bit] = i
			}
		}
		if got := Count(string(text), from, to); got != count {
			t.Errorf("%x from %d to %d: %d bits, want %d", text, from, to, got, count)
		}
		for bit, want := range first {
			if got := Find(string(text), bit == 1, from, to); got != want {
				t.Errorf("%x from %d to %d: the first %d is at %d, want %d", text, from, to, bit, got, want)
			}
		}
	}
}

func TestCombine(t *testing.T) {
	for _, c := range []struct {
		op    Op
		size  int
		texts []string
		want  string
	}{
		{And, 2, []string{"\xff\xff", "\x0f"}, "\x0f\x00"},
		{And, 2, []string{"\x0f", "\xff\xff"}, "\x0f\x00"},
		{Xor, 4, []string{"\x00\x00\x00\x00", "\U00019410"}, "\U00019410"}, // bytes, not runes
		{Or, 2, []string{"\xf0", "\x0f\x01"}, "\xff\x01"},
		{Xor, 2, []string{"\xff\xff", "\x0f"}, "\xf0\xff"},
		{Xor, 2, nil, "\x00\x00"},
		{Not, 2, []string{"\x0f\xff"}, "\xf0\x00"},
	} {
		if got := string(Combine(c.op, c.size, c.texts...)); got != c.want {
			t.Errorf("%d of %q: %q, want %q", c.op, c.texts, got, c.want)
		}
	}
}

func TestParse(t *testing.T) {
	for word, want := range map[string]Field{"u8": {Width: 8}, "i64": {true, 64}, "u63": {Width: 63}, "u1": {Width: 1}, "i16\x00x": {true, 16}} {
		if got, ok := ParseField(word); !ok || got != want {
			t.Errorf("%q is %v, %v", word, got, ok)
		}
	}
	for _, word := range []string{"", "u", "u0", "u64", "i65", "i-1", "U8", "u08", "u+8", "8", "u8x", "u9223372036854775808"} {
		if got, ok := ParseField(word); ok {
			t.Errorf("%q is %v", word, got)
		}
	}
	for word, want := range map[string]uint64{"0": 0, "#3": 24, "4294967295": 4294967295, "#4611686018427387904": 0} {
		if got, ok := (Field{Width: 8}).ParseOffset(word); !ok || got != want {
			t.Errorf("%q is %d, %v", word, got, ok)
		}
	}
	for _, word := range []string{"", "#", "-1", "#-1", "x", "4294967296", "#536870912", "##1"} {
		if got, ok := (Field{Width: 8}).ParseOffset(word); ok {
			t.Errorf("%q is %d", word, got)
		}
	}
	if got, ok := ParseOffset("#1"); ok {
		t.Errorf("without a field #1 is %d", got)
	}
}

// FuzzField: what fits comes back, what does not fit is as it should be, and the bits beside it stay.
func FuzzField(f *testing.F) {
	f.Add(true, int64(8), uint64(3), int64(-129), int64(1), byte(0xff))
	f.Add(false, int64(63), uint64(60), int64(-1), int64(math.MinInt64), byte(0))
	f.Add(true, int64(64), uint64(7), int64(math.MaxInt64), int64(math.MaxInt64), byte(0x5a))
	f.Fuzz(func(t *testing.T, signed bool, width int64, offset uint64, value, by int64, fill byte) {
		field := Field{signed, width}
		if width < 1 || width > 64 || width == 64 && !signed || offset > 1000 {
			return
		}
		text := Grown("", 2000)
		for i := range len(text) {
			text[i] = fill
		}
		before := plain(string(text))
		field.Put(text, offset, value)
		for i, bit := range plain(string(text)) {
			if at := uint64(i); (at < offset || at >= field.End(offset)) && bit != before[i] {
				t.Fatalf("%v at %d: bit %d has changed", field, offset, i)
			}
		}
		held := FieldOf(text, field, offset)
		if wrapped, ok := field.Sum(value, 0, Wraps); !ok || wrapped != held {
			t.Errorf("%v: %d is put as %d, and wraps to %d", field, value, held, wrapped)
		}
		sum, ok := field.Sum(held, by, Fails)
		if kept, fits := field.Sum(held, by, Saturates); fits != true || ok && kept != sum || !ok && kept != field.largest() && kept != 0 && kept != -field.largest()-1 {
			t.Errorf("%v: %d + %d is %d, %v; at most %d", field, held, by, sum, ok, kept)
		}
	})
}
