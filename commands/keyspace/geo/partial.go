package geo

// partial is a quicksort that leaves alone what is beyond the part that is wanted: that of Bentley and McIlroy ("Engineering a Sort
// Function", 1993), since which of equal elements come first depends on each of its steps.
type partial[E any] struct {
	all     []E
	compare func(a, b E) int
}

// Below few elements are inserted one by one; above many the middle is looked for among nine.
const (
	few  = 7
	many = 40
)

// sort has the elements from one place up to before another be in order, as far as they are among the first that are wanted.
func (p partial[E]) sort(from, to, wanted int) {
	for to-from > 1 && from < wanted {
		if to-from < few {
			p.insert(from, to)
			return
		}
		p.swap(from, p.middle(from, to))
		less, greater := p.split(from, to)
		p.sort(from, from+less, wanted)
		from = to - greater
	}
}

func (p partial[E]) swap(i, j int)    { p.all[i], p.all[j] = p.all[j], p.all[i] }
func (p partial[E]) cmp(i, j int) int { return p.compare(p.all[i], p.all[j]) }

func (p partial[E]) insert(from, to int) {
	for i := from + 1; i < to; i++ {
		for j := i; j > from && p.cmp(j-1, j) > 0; j-- {
			p.swap(j, j-1)
		}
	}
}

// middle is the place of an element that may be in the middle.
func (p partial[E]) middle(from, to int) int {
	n := to - from
	low, middle, high := from, from+n/2, to-1
	if n == few {
		return middle
	}
	if n > many {
		d := n / 8
		low = p.median(low, low+d, low+2*d)
		middle = p.median(middle-d, middle, middle+d)
		high = p.median(high-2*d, high-d, high)
	}
	return p.median(low, middle, high)
}

func (p partial[E]) median(a, b, c int) int {
	if p.cmp(a, b) < 0 {
		switch {
		case p.cmp(b, c) < 0:
			return b
		case p.cmp(a, c) < 0:
			return c
		}
		return a
	}
	switch {
	case p.cmp(b, c) > 0:
		return b
	case p.cmp(a, c) < 0:
		return a
	}
	return c
}

// split puts what is less than the first element before all others, what is greater after them, and tells how many these are.
func (p partial[E]) split(from, to int) (less, greater int) {
	equalLow, low := from+1, from+1 // equal ones gather at both ends
	equalHigh, high := to-1, to-1
	for {
		for ; low <= high; low++ {
			c := p.cmp(low, from)
			if c > 0 {
				break
			}
			if c == 0 {
				p.swap(equalLow, low)
				equalLow++
			}
		}
		for ; low <= high; high-- {
			c := p.cmp(high, from)
			if c < 0 {
				break
			}
			if c == 0 {
				p.swap(high, equalHigh)
				equalHigh--
			}
		}
		if low > high {
			break
		}
		p.swap(low, high)
		low++
		high--
	}
	less, greater = low-equalLow, equalHigh-high
	p.exchange(from, low, min(equalLow-from, less))
	p.exchange(low, to, min(greater, to-1-equalHigh))
	return less, greater
}

// exchange swaps the first n elements from one place on with the last n before another.
func (p partial[E]) exchange(from, to, n int) {
	for i := range n {
		p.swap(from+i, to-n+i)
	}
}
