package contents

import (
	"strconv"
	"testing"
)

// BenchmarkLargest measures the decoding and encoding of collections of 1 MB with small elements.
func BenchmarkLargest(b *testing.B) {
	h, z, s, l := NewHash(), NewSortedSet(), NewSet(), &List{}
	for i := 0; h.Size() < 1<<20; i++ {
		h.Set(strconv.Itoa(i), "")
	}
	for i := 0; z.Size() < 1<<20; i++ {
		z.Set(strconv.Itoa(i), float64(i))
	}
	for i := 0; s.Size() < 1<<20; i++ {
		s.Add("m" + strconv.Itoa(i))
	}
	for l.Size() < 1<<20 {
		l.Insert(l.Len(), "")
	}
	for _, c := range []Content{h, z, s, l} {
		encoded := Encode(c)
		b.Run(c.Kind().String()+"/read", func(b *testing.B) {
			b.ReportAllocs()
			for range b.N {
				if _, err := Decode(encoded); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(c.Kind().String()+"/write", func(b *testing.B) {
			for range b.N {
				Encode(c)
			}
		})
	}
}
