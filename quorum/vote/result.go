package vote

// Result is the state of a vote that a majority of the masters wins.
type Result int

const (
	// Pending: the votes that are still open decide.
	Pending Result = iota
	// Won: a majority said yes.
	Won
	// Lost: no majority can say yes any more.
	Lost
)

// Count is the result of a vote of n masters, of which so many said yes, and so many may still say
// it.
func Count(n, yes, open int) Result {
	switch majority := Majority(n); {
	case yes >= majority:
		return Won
	case yes+open >= majority:
		return Pending
	default:
		return Lost
	}
}
