package vote

// Result is the state of a vote that a majority of the masters wins.
type Result int

const (
	// Pending means that the open votes still decide the result.
	Pending Result = iota
	// Won means that a majority voted yes.
	Won
	// Lost means that a majority of yes votes is no longer possible.
	Lost
)

// Count returns the result of a vote of n masters with the given numbers of yes votes and open
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
