package vote

// Result is the state of a vote that a majority of the masters wins.
type Result int

const (
	// Pending: the open votes decide.
	Pending Result = iota
	// Won: a majority said yes.
	Won
	// Lost: no majority can say yes any more.
	Lost
)

// Count returns the result of a vote of n masters, with the given numbers of yes votes and open
// votes.
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
