// Package subsequence finds the longest text that two others have in common in the same order, though not in one piece, as Redis' LCS does.
package subsequence

// MaxCells bounds the work for two texts: the product of their lengths, each with one more.
const MaxCells = 1 << 22

// Range is a part of a text from one place to another, both included.
type Range struct{ First, Last int }

// Match is a part of both texts.
type Match struct{ A, B Range }

// Size is how long the part is.
func (m Match) Size() int { return m.A.Last - m.A.First + 1 }

// Longest is the longest text in common, of several the one that Redis chooses, and its parts, the last one first. As in Redis, a byte is in
// no part where it follows one at once in one of the texts only. ok is false where the texts are too long.
func Longest(a, b string) (text string, parts []Match, ok bool) {
	if (len(a)+1)*(len(b)+1) > MaxCells {
		return "", nil, false
	}
	t := lengths(a, b)
	common := make([]byte, t.at(len(a), len(b)))
	left := len(common)
	var open *Match // the part that may go on towards the front
	emit := func() {
		if open != nil {
			parts = append(parts, *open)
		}
		open = nil
	}
	for i, j := len(a), len(b); i > 0 && j > 0; {
		if a[i-1] != b[j-1] {
			emit()
			if t.at(i-1, j) > t.at(i, j-1) {
				i--
			} else {
				j--
			}
			continue
		}
		i, j, left = i-1, j-1, left-1
		common[left] = a[i]
		switch {
		case open == nil:
			open = &Match{Range{i, i}, Range{j, j}}
		case open.A.First == i+1 && open.B.First == j+1:
			open.A.First, open.B.First = i, j
		default:
			emit()
			continue
		}
		if i == 0 || j == 0 {
			emit()
		}
	}
	return string(common), parts, true
}

// table has, for the beginnings of two texts, how long the longest text in common is.
type table struct {
	cells []int32
	width int
}

// at is that of the first i bytes of one and the first j bytes of the other.
func (t table) at(i, j int) int32 { return t.cells[i*t.width+j] }

func lengths(a, b string) table {
	t := table{make([]int32, (len(a)+1)*(len(b)+1)), len(b) + 1}
	for i := range len(a) {
		before, row := t.cells[i*t.width:(i+1)*t.width], t.cells[(i+1)*t.width:(i+2)*t.width]
		for j := range len(b) {
			if a[i] == b[j] {
				row[j+1] = before[j] + 1
			} else {
				row[j+1] = max(before[j+1], row[j])
			}
		}
	}
	return t
}
