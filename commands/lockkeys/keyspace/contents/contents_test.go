package contents

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func hashOf(words ...string) *Hash {
	h := NewHash()
	for pair := range slices.Chunk(words, 2) {
		h.Set(pair[0], pair[1])
	}
	return h
}

func listOf(elems ...string) *List {
	l := &List{}
	l.Insert(0, elems...)
	return l
}

func sortedOf(members ...ScoredMember) *SortedSet {
	z := NewSortedSet()
	for _, m := range members {
		z.Set(m.Member, m.Score)
	}
	return z
}

// format formats all elements of a content.
func format(c Content) string {
	switch c := c.(type) {
	case Text:
		return fmt.Sprintf("%q", string(c))
	case *List:
		return fmt.Sprintf("list %q", c.Elems())
	case *Set:
		return fmt.Sprintf("set %q", c.Members())
	case *SortedSet:
		return fmt.Sprintf("zset %+v", c.Members())
	}
	text := "hash"
	c.(*Hash).Each(func(field, value string) { text += fmt.Sprintf(" %q=%q", field, value) })
	return text
}

func examples() []Content {
	long := strings.Repeat("long", 100)
	return []Content{
		Text(""), Text("token"), Text("\x00"), Text(mark), Text(mark + "h"), Text(mark + "t" + mark),
		Text(Encode(listOf("a"))), Text(mark[:4]), Text(long),
		listOf("a"), listOf("", "", mark), listOf("b", "a", "b"), listOf(long, strings.Repeat("x", 20_000)),
		hashOf("f", "v"), hashOf("b", "", "a", "1"), hashOf("a", "1", "b", ""), hashOf("", long),
		NewSet("x"), NewSet("10", "9", "-1", "x", "007", "", "+1"), NewSet(long, long+"r"),
		sortedOf(ScoredMember{"a", 1}), sortedOf(ScoredMember{"b", -1.5}, ScoredMember{"a", 0}, ScoredMember{"c", math.Inf(1)},
			ScoredMember{"", math.Inf(-1)}, ScoredMember{"aa", 0}),
	}
}

func TestEncode(t *testing.T) {
	seen := map[string]string{}
	for _, c := range examples() {
		encoded := Encode(c)
		if len(encoded) != c.Size() {
			t.Errorf("%s: %d bytes, Size returns %d", format(c), len(encoded), c.Size())
		}
		if previous, ok := seen[encoded]; ok {
			t.Errorf("%s and %s are the same: %q", previous, format(c), encoded)
		}
		seen[encoded] = format(c)
		decoded, err := Decode(encoded)
		if err != nil || format(decoded) != format(c) || reflect.TypeOf(decoded) != reflect.TypeOf(c) || decoded.Size() != c.Size() {
			t.Errorf("%s was decoded as %s (%v)", format(c), format(decoded), err)
		}
	}
}

// TestEncodedBytes checks that the encoding stays the same, because later versions must be able to
// read the values that masters store.
func TestEncodedBytes(t *testing.T) {
	for want, c := range map[string]Content{
		"token": Text("token"), "": Text(""), "\x00redlock": Text("\x00redlock"),
		"\x00redlock:t\x00redlock:":                          Text("\x00redlock:"),
		"\x00redlock:l\x01b\x00":                             listOf("b", ""),
		"\x00redlock:h\x02id\x011":                           hashOf("id", "1"),
		"\x00redlock:s\x012\x0210":                           NewSet("10", "2"),
		"\x00redlock:z\x3f\xf0\x00\x00\x00\x00\x00\x00\x01m": sortedOf(ScoredMember{"m", 1}),
	} {
		if got := Encode(c); got != want {
			t.Errorf("%s: %q, want %q", format(c), got, want)
		}
	}
}

func TestEncodingOfEqualContents(t *testing.T) {
	a, b := NewSet("x", "1", "y"), NewSet("y", "x", "2", "1")
	b.Delete("2")
	wantEqual(t, a, b)
	h := hashOf("gone", "1", "a", "old", "b", "2")
	h.Delete("gone")
	h.Set("a", "1")
	wantEqual(t, h, hashOf("a", "1", "b", "2"))
	if Encode(hashOf("a", "1", "b", "2")) == Encode(hashOf("b", "2", "a", "1")) {
		t.Error("the order of fields is lost")
	}
	z := sortedOf(ScoredMember{"a", 5}, ScoredMember{"b", math.Copysign(0, -1)})
	z.Set("a", 1)
	wantEqual(t, z, sortedOf(ScoredMember{"b", 0}, ScoredMember{"a", 1}))
}

func wantEqual(t *testing.T, a, b Content) {
	t.Helper()
	if Encode(a) != Encode(b) {
		t.Errorf("%s is %q, %s is %q", format(a), Encode(a), format(b), Encode(b))
	}
}

func TestUnreadableValues(t *testing.T) {
	nan := appendPart(appendScore([]byte(mark+"z"), math.NaN()), "m")
	minusZero := appendPart(appendScore([]byte(mark+"z"), math.Copysign(0, -1)), "m")
	for _, encoded := range []string{
		mark, mark + "t", mark + "tx", mark + "x", mark + "l", mark + "h", mark + "s", mark + "z",
		mark + "l\x02a", mark + "l\x81\x00a", mark + "l\xff\xff\xff\xff\xff\xff", mark + "l\x80", mark + "h\x01a",
		mark + "h\x01a\x011\x01a\x012",
		mark + "s\x02\x31\x30\x012", mark + "s\x01a\x01a", mark + "z1234567", string(nan), string(minusZero),
		Encode(sortedOf(ScoredMember{"b", 1})) + Encode(sortedOf(ScoredMember{"a", 1}))[markSize:],
		Encode(sortedOf(ScoredMember{"a", 1})) + Encode(sortedOf(ScoredMember{"a", 2}))[markSize:],
	} {
		if c, err := Decode(encoded); !errors.Is(err, ErrUnreadable) {
			t.Errorf("%q is read as %v, %v", encoded, c, err)
		}
	}
}

func TestEncodings(t *testing.T) {
	long, numbers := strings.Repeat("x", 65), make([]string, 600)
	for i := range numbers {
		numbers[i] = strconv.Itoa(i)
	}
	fields := NewHash()
	scores := NewSortedSet()
	for _, m := range numbers {
		fields.Set(m, "")
		scores.Set(m, 1)
	}
	for _, test := range []struct {
		c    Content
		want string
	}{
		{Text("12"), "int"}, {Text("9223372036854775808"), "embstr"}, {Text(strings.Repeat("x", 44)), "embstr"},
		{Text(strings.Repeat("x", 45)), "raw"},
		{listOf(numbers...), "quicklist"}, {hashOf("a", long[1:]), "listpack"}, {hashOf("a", long), "hashtable"},
		{hashOf(long, ""), "hashtable"}, {fields, "hashtable"},
		{NewSet(numbers[:512]...), "intset"}, {NewSet(numbers[:513]...), "hashtable"}, {NewSet("1", "x"), "hashtable"},
		{sortedOf(ScoredMember{long[1:], 1}), "listpack"}, {sortedOf(ScoredMember{long, 1}), "skiplist"}, {scores, "skiplist"},
	} {
		if got := test.c.Encoding(); got != test.want {
			t.Errorf("%.60s: %s, want %s", format(test.c), got, test.want)
		}
	}
}

// TestOrder checks that the elements are in order after random changes, with random reads between.
func TestOrder(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	z, s, scores := NewSortedSet(), NewSet(), map[string]float64{}
	for range 300 {
		for range random.IntN(2 + 400*random.IntN(2)) {
			member, score := strconv.Itoa(random.IntN(700)), float64(random.IntN(40))
			if random.IntN(3) == 0 {
				_, exists := scores[member]
				if z.Delete(member) != exists || s.Delete(member) != exists {
					t.Fatalf("%s existed: %v", member, exists)
				}
				delete(scores, member)
				continue
			}
			_, exists := scores[member]
			if z.Set(member, score) == exists || s.Add(member) == exists {
				t.Fatalf("%s is new: %v", member, !exists)
			}
			scores[member] = score
		}
		members := z.Members()
		if len(members) != len(scores) || !slices.IsSortedFunc(members, compareScoredMembers) ||
			len(s.Members()) != len(scores) || !slices.IsSortedFunc(s.Members(), compareMembers) {
			t.Fatalf("%v\n%v\nof %v", members, s.Members(), scores)
		}
		for i, m := range members {
			if rank, ok := z.Rank(m.Member); scores[m.Member] != m.Score || rank != i || !ok {
				t.Fatalf("%v at %d", m, i)
			}
		}
		if Encode(z) != Encode(sortedOf(members...)) && len(members) > 0 {
			t.Fatal("the encoding depends on earlier members")
		}
	}
}

func TestDoubles(t *testing.T) {
	for word, want := range map[string]string{
		"1": "1", "0.1": "0.10000000000000001", "-0": "-0", "1e17": "1e+17", "17179869184.125": "17179869184.125",
		"inf": "inf", "-Infinity": "-inf", "0x10": "16", "0e5": "0", ".5": "0.5",
	} {
		n, ok := ParseDouble(word)
		if got := FormatDouble(n); got != want || !ok {
			t.Errorf("%q is %s (%v), want %s", word, got, ok, want)
		}
	}
	for _, word := range []string{"", " 1", "1 ", "nan", "1e400", "1e-400", "x", "1\x00", "--1", "0x", "1_0"} {
		if n, ok := ParseDouble(word); ok {
			t.Errorf("%q is %v", word, n)
		}
	}
}

func TestLongDoubles(t *testing.T) {
	for _, test := range []struct{ a, b, want string }{
		{"10.5", "0.1", "10.6"}, {"5.0e3", "2.0e2", "5200"}, {"0", "-0", "0"}, {"1", "-1", "0"}, {"0.1", "0.2", "0.3"},
		{"-0.00000000000000000001", "0", "0"},
		{"9223372036854775807", "1", "9223372036854775808"}, {"3", "1.000000000000000005", "4.00000000000000001"},
		{"0x1p-1", "1", "1.5"}, {"1e25", "0", "10000000000000000000000000"},
	} {
		a, ok1 := ParseLongDouble(test.a)
		b, ok2 := ParseLongDouble(test.b)
		if !ok1 || !ok2 {
			t.Errorf("%s, %s: %v, %v", test.a, test.b, ok1, ok2)
			continue
		}
		if sum, ok := a.Add(b); !ok || sum.String() != test.want {
			t.Errorf("%s + %s is %s, want %s", test.a, test.b, sum, test.want)
		}
	}
	for _, word := range []string{"", " 1", "nan", "1e5000", "1e-5000", "1e999999999999", "x", "1\x00",
		strings.Repeat("1", 6000)} {
		if n, ok := ParseLongDouble(word); ok {
			t.Errorf("%.20q is %v", word, n)
		}
	}
}

// FuzzDecode checks that Encode returns the string from which Decode made a content, and that Size
// returns the length of this string.
func FuzzDecode(f *testing.F) {
	for _, c := range examples() {
		f.Add(Encode(c))
	}
	f.Add(mark + "l\xff\xff\xff\xff\x7f")
	f.Fuzz(func(t *testing.T, encoded string) {
		c, err := Decode(encoded)
		if err != nil {
			return
		}
		if reencoded := Encode(c); reencoded != encoded || c.Size() != len(encoded) || c.Len() == 0 {
			t.Errorf("%q is read as %s and written as %q", encoded, format(c), reencoded)
		}
	})
}

// FuzzEncode checks that decoding an encoded content returns the same content.
func FuzzEncode(f *testing.F) {
	f.Add("a b c", byte(0))
	f.Add("f v g w", byte(1))
	f.Add("1 x 2 y", byte(3))
	f.Fuzz(func(t *testing.T, text string, kind byte) {
		words := strings.Split(text, " ")
		var c Content = Text(text)
		switch kind % 5 {
		case 1:
			c = listOf(words...)
		case 2:
			c = NewSet(words...)
		case 3:
			h := NewHash()
			for i, w := range words {
				h.Set(w, strconv.Itoa(i))
			}
			c = h
		case 4:
			z := NewSortedSet()
			for _, w := range words {
				score, _ := ParseDouble(w)
				z.Set(w, score+0) // Encode turns -0 into 0
			}
			c = z
		}
		decoded, err := Decode(Encode(c))
		if err != nil || format(decoded) != format(c) || Encode(decoded) != Encode(c) {
			t.Errorf("%s was decoded as %v (%v)", format(c), decoded, err)
		}
	})
}
