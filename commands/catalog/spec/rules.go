package spec

import "redlock-proxy/commands/catalog/keys"

// The rules that many commands share.
var (
	first            = keys.InSpan(1, 1, 1)
	second           = keys.InSpan(2, 2, 1)
	firstTwo         = keys.InSpan(1, 2, 1)
	all              = keys.InSpan(1, -1, 1)
	allButFirst      = keys.InSpan(2, -1, 1)
	allButLast       = keys.InSpan(1, -2, 1)
	pairs            = keys.InSpan(1, -1, 2) // each key with a value
	triples          = keys.InSpan(1, -1, 3)
	counted          = keys.Counted(1, 1) // the first argument is the number of keys
	countedPairs     = keys.Counted(1, 2)
	countedSecond    = keys.Counted(2, 1)
	targetAndCounted = keys.CountedAfterOne(2)
)
