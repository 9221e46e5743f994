package spec

import "redlock-proxy/commands/catalog/keys"

// The rules that many commands share.
var (
	firstArg             = keys.InSpan(1, 1, 1)
	secondArg            = keys.InSpan(2, 2, 1)
	firstTwoArgs         = keys.InSpan(1, 2, 1)
	allArgs              = keys.InSpan(1, -1, 1)
	allArgsButFirst      = keys.InSpan(2, -1, 1)
	allArgsButLast       = keys.InSpan(1, -2, 1)
	keyValuePairs        = keys.InSpan(1, -1, 2) // each key with a value
	keyTriples           = keys.InSpan(1, -1, 3)
	countedKeys          = keys.CountedKeys(1, 1) // the first argument is the number of keys
	countedKeyPairs      = keys.CountedKeys(1, 2)
	keysCountedBySecond  = keys.CountedKeys(2, 1)
	targetAndCountedKeys = keys.CountedKeysAfterFirst(2)
)
