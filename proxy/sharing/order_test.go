package sharing

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// Replies are dealt out as they were asked for, however the stream is cut.
func TestOrderDealsRepliesOut(t *testing.T) {
	shapes := []string{
		"+OK\r\n", "-ERR no\r\n", ":12\r\n", "$-1\r\n", "*-1\r\n", "$0\r\n\r\n", "$4\r\n+OK\r\r\n", "*0\r\n", "*2\r\n$1\r\na\r\n*1\r\n:1\r\n",
		"$300\r\n" + strings.Repeat("*1\r\n$1\r\n", 42)[:300] + "\r\n", "+" + strings.Repeat("s", 100) + "\r\n",
	}
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		var o order[int]
		want, stream, owed := map[int]string{}, "", map[int]int{}
		got, ended := map[int]string{}, map[int]int{}
		for range 1 + random.IntN(30) {
			who, n := random.IntN(4), 1+random.IntN(5)
			o.owe(who, n)
			owed[who] += n
			for range n {
				reply := shapes[random.IntN(len(shapes))]
				want[who] += reply
				stream += reply
			}
			for cut := random.IntN(len(stream) + 1); cut > 0; {
				part, err := o.next([]byte(stream[:cut]))
				if err != nil {
					t.Fatal(err)
				}
				got[part.to] += stream[:part.size]
				ended[part.to] += part.ended
				stream, cut = stream[part.size:], cut-part.size
			}
		}
		for stream != "" {
			part, err := o.next([]byte(stream))
			if err != nil {
				t.Fatal(err)
			}
			got[part.to] += stream[:part.size]
			ended[part.to] += part.ended
			stream = stream[part.size:]
		}
		if fmt.Sprint(got, ended) != fmt.Sprint(want, owed) || !o.empty() || o.size != 0 {
			t.Fatalf("seed %d: got %v, %v\nwant %v, %v", seed, got, ended, want, owed)
		}
	}
}

func TestOrderRefusesWhatNobodyAskedFor(t *testing.T) {
	var o order[int]
	if _, err := o.next([]byte("+OK\r\n")); err != errUnasked {
		t.Errorf("unasked: %v", err)
	}
	o.owe(1, 1)
	part, err := o.next([]byte("+OK\r\n+OK\r\n"))
	if err != nil || part.size != 5 || part.ended != 1 {
		t.Errorf("%+v, %v", part, err)
	}
	if _, err := o.next([]byte("+OK\r\n")); err != errUnasked {
		t.Errorf("one more than asked for: %v", err)
	}
	for _, odd := range []string{">1\r\n+x\r\n", "HTTP/1.1 400\r\n", "\r\n"} {
		o := order[int]{}
		o.owe(1, 1)
		if _, err := o.next([]byte(odd)); err != errNoReply {
			t.Errorf("%q: %v", odd, err)
		}
	}
}

func TestOrderTellsWhatIsLeft(t *testing.T) {
	var o order[string]
	o.owe("a", 2)
	o.owe("b", 1)
	o.owe("a", 3)
	if o.alone("a") {
		t.Error("a is said to be alone")
	}
	part, err := o.next([]byte(":1\r\n$100000\r\nxx"))
	if err != nil || part.to != "a" || part.ended != 1 || part.inside != len("$100000\r\nxx") {
		t.Fatalf("%+v, %v", part, err)
	}
	all, inside := o.left()
	if want := []debt[string]{{"a", 4}, {"b", 1}}; !slices.Equal(all, want) || !inside {
		t.Errorf("left: %v, %v", all, inside)
	}
	if !o.empty() {
		t.Error("something is left after that")
	}
}

// In RESP3 messages may stand between replies that nobody is owed.
func TestOrderTakesMessagesOut(t *testing.T) {
	messages := []string{">0\r\n", ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n", ">1\r\n*2\r\n+>\r\n$1\r\n>\r\n"}
	replies := []string{"+OK\r\n", "%1\r\n+a\r\n:1\r\n", "_\r\n", "|1\r\n+a\r\n+b\r\n:1\r\n", "*2\r\n$3\r\n>1\r\r\n:1\r\n", ",1.5\r\n", "~1\r\n#t\r\n"}
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 2))
		o := order[int]{pushes: true}
		var want, got [3]string
		stream := ""
		for range 40 {
			if random.IntN(3) == 0 {
				stream += messages[random.IntN(len(messages))]
				continue
			}
			who, reply := random.IntN(3), replies[random.IntN(len(replies))]
			o.owe(who, 1)
			want[who] += reply
			stream += reply
		}
		for stream != "" {
			cut := 1 + random.IntN(len(stream))
			for p := stream[:cut]; p != ""; {
				part, err := o.next([]byte(p))
				if err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				if !part.push {
					got[part.to] += p[:part.size]
				}
				p = p[part.size:]
			}
			stream = stream[cut:]
		}
		if got != want || !o.empty() || o.size != 0 || o.pushing {
			t.Fatalf("seed %d: got %q\nwant %q", seed, got, want)
		}
	}
}
